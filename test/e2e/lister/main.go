// Command lister is a pod of the end-to-end tests that talks to its API server as any client-go program does: with the
// in-cluster configuration. It prints who it is and the ConfigMaps of its own namespace, once in a while.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	every         = 2 * time.Second
	timeout       = 10 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if line, err := look(ctx); err != nil {
			fmt.Println("failed:", err)
		} else {
			fmt.Println(line)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look asks the API server who the pod is, and what ConfigMaps its namespace has.
func look(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config, err := rest.InClusterConfig()
	if err != nil {
		return "", fmt.Errorf("reading the in-cluster configuration: %w", err)
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("reading the name of the namespace: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking who this is: %w", err)
	}
	list, err := client.CoreV1().ConfigMaps(string(namespace)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("listing ConfigMaps in namespace %s: %w", namespace, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return fmt.Sprintf("%s sees %s", review.Status.UserInfo.Username, strings.Join(names, ",")), nil
}
