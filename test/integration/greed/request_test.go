package greed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/world"
)

// T40, T41, T42: API servers look at each element of an object before they ask validating policies and webhooks, compare each error with all before
// it, and go on with that when the request timed out; mutating webhooks are asked before that. What is not for a consumer to ask is refused
// earlier: no request keeps the provider's processors busy, or fills its API server or its controller manager.
func TestOneRequestIsCheap(t *testing.T) {
	w := env.Peered(t)
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "pods", "1"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	server, manager := env.Environment.Lab.PID("milan/kube-apiserver"), w.Milan.PID()
	elements := func(one string, count int) string { return one + strings.Repeat(","+one, count-1) }
	numbered := func(format string, count int) string {
		var all strings.Builder
		for i := range count {
			fmt.Fprintf(&all, format, i)
		}
		return strings.TrimSuffix(all.String(), ",")
	}
	shadowpods, slices := "offloading.liqo.io/v1beta1/shadowpods/ShadowPod", "offloading.liqo.io/v1beta1/shadowendpointslices/ShadowEndpointSlice"
	services, reviews := "v1/services/Service", "authorization.k8s.io/v1/selfsubjectaccessreviews/SelfSubjectAccessReview"
	for name, tc := range map[string]struct{ kind, rest string }{
		"80 000 containers":               {shadowpods, `"spec":{"pod":{"containers":[` + elements("{}", 80_000) + `]}}`},
		"900 000 containers":              {shadowpods, `"spec":{"pod":{"containers":[` + elements("{}", 900_000) + `]}}`},
		"variables of many containers":    {shadowpods, `"spec":{"pod":{"containers":[` + elements(`{"env":[`+elements("{}", 1500)+`]}`, 50) + `]}}`},
		"sources of a volume":             {shadowpods, `"spec":{"pod":{"volumes":[{"name":"a","projected":{"sources":[` + elements(`{"secret":{"items":[{}]}}`, 30_000) + `]}}],"containers":[]}}`},
		"addresses of an endpoint":        {slices, `"spec":{"template":{"endpoints":[{"addresses":[` + elements("{}", 80_000) + `]}]}}`},
		"ports of a Service":              {services, `"spec":{"ports":[` + elements("{}", 60_000) + `]}`},
		"more ports of a Service":         {services, `"spec":{"ports":[` + elements("{}", 100_001) + `]}`},
		"selectors of a question":         {reviews, `"spec":{"resourceAttributes":{"labelSelector":{"requirements":[` + elements("{}", 80_000) + `]}}}`},
		"keys of a ConfigMap":             {"v1/configmaps/ConfigMap", `"data":{` + numbered(`"/k%d":"",`, 20_000) + `}`},
		"fewer keys of a Secret":          {"v1/secrets/Secret", `"data":{` + numbered(`"/k%d":"",`, 16_000) + `}`},
		"paths of an Ingress":             {"networking.k8s.io/v1/ingresses/Ingress", `"spec":{"rules":[` + elements(`{"http":{"paths":[{}]}}`, 12_000) + `]}`},
		"accesses of a claim":             {"v1/persistentvolumeclaims/PersistentVolumeClaim", `"spec":{"accessModes":[` + elements(`""`, 900_000) + `]}`},
		"requests of a claim's resources": {"v1/persistentvolumeclaims/PersistentVolumeClaim", `"spec":{"resources":{"requests":{` + numbered(`"/%d":"-1",`, 20_000) + `}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(tc.kind, "/")
			kind, resource, version := parts[len(parts)-1], parts[len(parts)-2], strings.Join(parts[:len(parts)-2], "/")
			body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"many","namespace":%q,"labels":{%q:%q,%q:"milan",%q:"x"}},%s}`,
				version, kind, namespace, offloadingv1beta1.OriginLabel, c.ID, offloadingv1beta1.DestinationLabel, offloadingv1beta1.CreatorUserLabel, tc.rest)
			path := "/apis/" + version + "/namespaces/" + namespace + "/" + resource
			switch {
			case version == "v1":
				path = strings.Replace(path, "/apis/", "/api/", 1)
			case tc.kind == reviews:
				path = "/apis/" + version + "/" + resource
			}
			before, managers := memoryOf(t, server, "VmHWM"), memoryOf(t, manager, "VmHWM")
			var answer []byte
			var err error
			var took time.Duration
			used := spent(t, server, func() {
				begin := time.Now()
				answer, err = user.Kube.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).DoRaw(t.Context())
				took = time.Since(begin)
			})
			peak, managersPeak := memoryOf(t, server, "VmHWM"), memoryOf(t, manager, "VmHWM")
			t.Logf("%d KiB, answered in %s with %d KiB: %d %.200v; the API server spent %s and had at most %d MiB (%d before), the controller manager %d (%d before)",
				len(body)>>10, took, len(answer)>>10, code(err), err, used, peak, before, managersPeak, managers)
			if err == nil {
				t.Error("it is not refused")
			}
			if len(answer) > 16<<10 {
				t.Errorf("one request of %d KiB is answered with %d KiB", len(body)>>10, len(answer)>>10)
			}
			most := 256
			if tc.kind == services {
				most = 448 // what the API server needs to read the largest of these, before anything is asked: 136 to 285 were seen
			}
			if used > 5*time.Second || peak-before > most {
				t.Errorf("one request of %d KiB costs the provider's API server %s of processor time and %d MiB", len(body)>>10, used, peak-before)
			}
			if managersPeak-managers > 256 {
				t.Errorf("one request of %d KiB costs the provider's controller manager %d MiB", len(body)>>10, managersPeak-managers)
			}
		})
	}
}

func code(err error) int32 {
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Code
	}
	return 0
}
