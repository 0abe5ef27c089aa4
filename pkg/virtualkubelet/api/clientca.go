package api

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

const (
	clientCANamespace = "kube-system"
	clientCAConfigMap = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
)

// ClientCA returns the bundle that signs the client certificates of the cluster, the kube-apiserver's among them. It
// comes from the ConfigMap kube-system/extension-apiserver-authentication, where every API server publishes it;
// when this node may not read it or the cluster does not publish it, from the file, unless that is "". With neither,
// the result is nil: then only tokens are accepted. Any other failure to read the ConfigMap is an error worth a retry.
// Server.Run keeps the bundle up to date.
func ClientCA(ctx context.Context, client kubernetes.Interface, file string) (dynamiccertificates.CAContentProvider, error) {
	published, err := client.CoreV1().ConfigMaps(clientCANamespace).Get(ctx, clientCAConfigMap, metav1.GetOptions{})
	switch {
	case err == nil && published.Data[clientCAKey] != "":
		provider, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
			"client-ca", clientCANamespace, clientCAConfigMap, clientCAKey, client)
		if err != nil {
			return nil, fmt.Errorf("following the client CA in ConfigMap %s/%s: %w", clientCANamespace, clientCAConfigMap, err)
		}
		return provider, nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading the client CA from ConfigMap %s/%s: %w", clientCANamespace, clientCAConfigMap, err)
	case file == "":
		return nil, nil
	}
	// Looked at first, because the provider leaves a goroutine behind when it fails.
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("reading the client CA from file %s: %w", file, err)
	}
	provider, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading the client CA from file %s: %w", file, err)
	}
	return provider, nil
}
