package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/peer"
	chartflags "liqo.io/liqo/test/flags"
)

func TestTheChartKnowsTheFlags(t *testing.T) {
	chartflags.Fresh(t, "virtual-kubelet", newCommand().LocalFlags())
}

// Both clients of this cluster ask for protobuf where a kind has it; the second one chooses by itself, unless it is told.
func TestClientsAskForProtobuf(t *testing.T) {
	var accepts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepts = append(accepts, r.Header.Get("Accept"))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	typed, err := kubernetes.NewForConfig(peer.Compact(config))
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	watching, err := client.NewWithWatch(config, client.Options{Scheme: newScheme(), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = typed.CoreV1().ConfigMaps("a").Get(t.Context(), "b", metav1.GetOptions{})
	_ = watching.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{})
	if len(accepts) != 2 {
		t.Fatalf("%d requests", len(accepts))
	}
	for i, name := range []string{"Kubernetes' own kinds", "all kinds"} {
		if !strings.HasPrefix(accepts[i], runtime.ContentTypeProtobuf) {
			t.Errorf("the client of %s asks for %q", name, accepts[i])
		}
	}
	if config.ContentType != "" {
		t.Error("the configuration of others was changed")
	}
}
