package settings

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// What virtualKubelet.extra.args={--enable-apiserver-support=false} gives a virtual kubelet: its pods get no token, and no way to the API server.
func TestPodsWithoutAWayToTheAPIServer(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	usual := slices.Clone(w.Kubelet.Args)
	restarted := func(args []string) {
		fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
		w.Kubelet.Args = args
		w.Kubelet.Start(t)
	}
	restarted(append(slices.Clone(usual), "--enable-apiserver-support=false"))
	defer restarted(usual)
	for _, with := range []bool{false, true} {
		name := fmt.Sprint("with-token-", with)
		if with {
			restarted(usual)
		}
		pod := world.Pod(namespace, name)
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
		env.AwaitPod(t, pod, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		remote := env.RemoteOf(t, pod)
		told := slices.ContainsFunc(remote.Spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "KUBERNETES_SERVICE_HOST" })
		mounted := slices.ContainsFunc(remote.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
		})
		err := env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: reflection.TokenSecretName(name)}, &corev1.Secret{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if told != with || mounted != with || (err == nil) != with {
			t.Errorf("pod %s: told where the API server is: %t, a token is mounted: %t, there is one: %t; want %t", name, told, mounted, err == nil, with)
		}
	}
}
