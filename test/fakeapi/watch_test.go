package fakeapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
)

// What is deleted between a list and its watch is told by the watch.
func TestNoGaps(t *testing.T) {
	clientset := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop"}})
	NoGaps(&clientset.Fake, clientset.Tracker())
	pods := clientset.CoreV1().Pods("shop")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("listed %v, error %v", list, err)
	}
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case event := <-w.ResultChan():
		if event.Type != watch.Deleted {
			t.Errorf("the watch told %s", event.Type)
		}
	default:
		t.Error("the watch does not know of the deletion")
	}
}
