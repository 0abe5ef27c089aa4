package api

import (
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

func serveHealthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok"))
}

func (s *Server) servePods(w http.ResponseWriter, r *http.Request) {
	writePods(w, r, s.options.Pods(), func(*corev1.Pod) bool { return true })
}

func (s *Server) serveRunningPods(w http.ResponseWriter, r *http.Request) {
	writePods(w, r, s.options.Pods(), func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}

func writePods(w http.ResponseWriter, r *http.Request, pods []*corev1.Pod, keep func(*corev1.Pod) bool) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, pod := range pods {
		if keep(pod) {
			list.Items = append(list.Items, *pod)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(&list); err != nil {
		klog.FromContext(r.Context()).V(2).Info("The reader of the pod list went away", "reason", err.Error())
	}
}
