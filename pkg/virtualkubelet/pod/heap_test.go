package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

// BenchmarkPod tells how much memory the Reconciler holds for each pod that runs and does not change. It reads them as it reads
// them from API servers: what the decoders leave over counts.
func BenchmarkPod(b *testing.B) {
	for b.Loop() {
		none, many := liveHeap(b, 0), liveHeap(b, 500)
		b.ReportMetric(float64(many-none)/500, "B/pod")
	}
}

// liveHeap is what a Reconciler with so many pods holds.
func liveHeap(b *testing.B, pods int) int64 {
	b.Helper()
	server := httptest.NewServer(&clusters{pods: pods})
	defer server.Close()
	r, stop := runOn(b, server.URL)
	err := wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return remembered(r, func(s *state) bool { return s.taken && !s.starting.IsZero() }) == pods && r.work.Len()+r.status.Len() == 0, nil
	})
	if err != nil {
		b.Fatalf("waited in vain until %d pods are taken for in step: %v", pods, err)
	}
	with := heap()
	stop()
	r = nil // lets go of the Reconciler, which the closure above holds
	return with - heap()
}

// runOn runs a Reconciler on a server that is both clusters, with one namespace that is offloaded.
func runOn(b *testing.B, host string) (r *Reconciler, stop func()) {
	b.Helper()
	config := &rest.Config{Host: host, QPS: -1}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = apiruntime.ContentTypeProtobuf
	kube := kubernetes.NewForConfigOrDie(protobuf)
	p := &fakePeer{subscribers: map[int]func(peer.State){}, state: peer.State{Connected: true, Epoch: 1},
		clients: peer.Clients{Kube: kube, REST: kube.CoreV1().RESTClient(), Dynamic: dynamic.NewForConfigOrDie(config)}}
	r, err := New(Options{Home: "rome", Remote: "milan", Node: "milan", NodeIP: nodeIP, Local: kube, Peer: p, Wanted: latest.New(Wanted{
		Workers: 10, Mapping: Mapping{Known: true, Desired: map[string]string{"shop": twinNamespace}, Effective: map[string]string{"shop": twinNamespace}},
	})})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() {
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

const nodeIP = "10.9.9.9"

// clusters answers for both API servers. The pods are in step.
type clusters struct{ pods int }

func (c *clusters) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var object func(i int) apiruntime.Object
	info, _ := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), apiruntime.ContentTypeProtobuf)
	codec, gv := scheme.Codecs, corev1.SchemeGroupVersion
	var last apiruntime.Object = &corev1.Pod{}
	switch path := request.URL.Path; {
	case request.Method != http.MethodGet:
	case path == "/api/v1/pods":
		object = func(i int) apiruntime.Object { local, _, _ := inStep(i); return local }
	case path == "/api/v1/namespaces/"+twinNamespace+"/pods":
		object = func(i int) apiruntime.Object { _, _, remote := inStep(i); return remote }
	case strings.HasSuffix(path, "/shadowpods"):
		own := apiruntime.NewScheme()
		_ = offloadingv1beta1.AddToScheme(own)
		codec, gv, last = serializer.NewCodecFactory(own), offloadingv1beta1.GroupVersion, &offloadingv1beta1.ShadowPod{}
		info, _ = apiruntime.SerializerInfoForMediaType(codec.SupportedMediaTypes(), apiruntime.ContentTypeJSON)
		object = func(i int) apiruntime.Object { _, shadow, _ := inStep(i); return shadow }
	}
	if object == nil || request.URL.Query().Get("sendInitialEvents") != "true" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
		return
	}
	w.Header().Set("Content-Type", info.MediaType+";stream=watch")
	events := restwatch.NewEncoder(streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(w), info.StreamSerializer.Serializer),
		codec.EncoderForVersion(info.Serializer, gv))
	for i := range c.pods {
		_ = events.Encode(&watch.Event{Type: watch.Added, Object: object(i)})
	}
	marked := last.(metav1.Object)
	marked.SetResourceVersion("100000")
	marked.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	_ = events.Encode(&watch.Event{Type: watch.Bookmark, Object: last})
	w.(http.Flusher).Flush()
	<-request.Context().Done()
}

// inStep is a pod of a ReplicaSet as API servers and kubelets complete it, with its ShadowPod and its remote pod.
func inStep(i int) (*corev1.Pod, *offloadingv1beta1.ShadowPod, *corev1.Pod) {
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	name := fmt.Sprintf("shop-5d4f8c7b9-x%04d", i)
	local := newPod(name, types.UID(fmt.Sprintf("6a0d2c1e-7b7f-4d0e-9a53-%012d", i)), func(p *corev1.Pod) {
		p.GenerateName, p.ResourceVersion, p.Generation, p.CreationTimestamp = "shop-5d4f8c7b9-", fmt.Sprint(1000+i), 1, since
		p.Labels = map[string]string{"app": "shop", "pod-template-hash": "5d4f8c7b9"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-5d4f8c7b9",
			UID: "0f6f1a52-3c80-4f1e-a3b5-5a1de1a1b6f0", Controller: new(true), BlockOwnerDeletion: new(true)}}
		p.Spec.Containers[0] = corev1.Container{
			Name: "app", Image: "registry.example.com/shop/app:1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Resources:              corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}},
			VolumeMounts:           []corev1.VolumeMount{{Name: "kube-api-access-2xk9q", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}
		p.Spec.TerminationGracePeriodSeconds, p.Spec.DNSPolicy = new(int64(30)), corev1.DNSClusterFirst
		p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount, p.Spec.SchedulerName = "default", "default", corev1.DefaultSchedulerName
		p.Spec.SecurityContext, p.Spec.Priority, p.Spec.EnableServiceLinks = &corev1.PodSecurityContext{}, new(int32(0)), new(true)
		p.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))})
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-2xk9q", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace",
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
			}}}}}
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: since}}}
	})
	shadow, refused := reflection.ShadowPod(local, reflection.PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: twinNamespace})
	if refused != nil {
		panic(refused.Message)
	}
	shadow.UID, shadow.ResourceVersion = types.UID(fmt.Sprintf("b1f7c2aa-1d0b-4a71-8a35-%012d", i)), fmt.Sprint(2000+i)
	shadow.Generation, shadow.CreationTimestamp = 1, since
	shadow.Labels[offloadingv1beta1.CreatorUserLabel] = "5e0c6ef8c9d1a3b2"
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: twinNamespace, UID: types.UID(fmt.Sprintf("c9be1f04-5f7e-4c3b-8d53-%012d", i)), ResourceVersion: fmt.Sprint(3000 + i),
		Generation: 1, CreationTimestamp: since, Labels: maps.Clone(shadow.Labels), Annotations: maps.Clone(shadow.Annotations),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "offloading.liqo.io/v1beta1", Kind: "ShadowPod", Name: name, UID: shadow.UID, Controller: new(true)}},
	}, Spec: shadow.Spec.Pod}
	remote.Annotations[corev1beta1.OriginUIDAnnotation] = string(local.UID)
	remote.Spec.NodeName = "milan-worker-7"
	remote.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.7", PodIPs: []corev1.PodIP{{IP: "10.1.0.7"}}, HostIP: "192.0.2.1",
		HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}}, StartTime: &since, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 1,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, Started: new(true), Image: "registry.example.com/shop/app:1.2.3",
			ImageID:     "registry.example.com/shop/app@sha256:7031c1b283388d2c2e09b57badb803c05ebed362dc88d84b480cc47f72a21097",
			ContainerID: fmt.Sprintf("containerd://7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac%011d", i),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}}}}
	for _, condition := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		remote.Status.Conditions = append(remote.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: since})
	}
	local.Status, _ = reflection.LocalStatus(local, remote, reflection.StatusInput{NodeIP: nodeIP, Now: since.Time, ChangesTaken: true})
	local.Status.ObservedGeneration = 1
	return local, shadow, remote
}
