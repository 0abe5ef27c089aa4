package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// inventory is every object of a cluster, as "<resource>.<group> <namespace>/<name>".
type inventory []string

// made is what Kubernetes itself makes and removes at its own pace: matched by the start of an inventory line.
var made = []string{
	"events.", "events.events.k8s.io ", "componentstatuses.",
	"leases.coordination.k8s.io kube-system/apiserver-", "pods. kube-system/", "replicasets.apps kube-system/",
	"pods.metrics.k8s.io ", "endpointslices.discovery.k8s.io kube-system/", "endpoints. kube-system/",
}

// snapshot is what there was before Liqo, in each cluster that gets it. A kept lab remembers it.
func (s *suite) snapshot(ctx context.Context) (map[string]inventory, error) {
	path := filepath.Join(s.lab.Dir(), "before-liqo.json")
	found := map[string]inventory{}
	data, err := os.ReadFile(path)
	if err == nil {
		return found, json.Unmarshal(data, &found)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	sides := s.sides()
	at := make([]inventory, len(sides))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, c := range sides {
		group.Go(func() (err error) { at[i], err = c.inventoryAtRest(groupCtx); return err })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, c := range sides {
		found[c.name] = at[i]
	}
	if data, err = json.Marshal(found); err != nil {
		return nil, err
	}
	return found, os.WriteFile(path, data, 0o600)
}

// inventoryAtRest is what a new cluster has once Kubernetes has made all that it makes by itself: when it looks the same twice.
func (c *side) inventoryAtRest(ctx context.Context) (inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	var last inventory
	for {
		now, err := c.inventory(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Equal(now, last) {
			return now, nil
		}
		last = now
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("what %s has keeps changing: %w", c.name, ctx.Err())
		case <-ticker.C:
		}
	}
}

// inventory lists every object of every kind that the cluster knows.
func (c *side) inventory(ctx context.Context) (inventory, error) {
	lists, err := discovery.ServerPreferredResources(c.kube.Discovery())
	if err != nil {
		return nil, fmt.Errorf("listing the kinds of %s: %w", c.name, err)
	}
	objects, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", c.name, err)
	}
	var found inventory
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			items, err := objects.Resource(group.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s of %s: %w", kind.Name, c.name, err)
			}
			for i := range items.Items {
				found = append(found, fmt.Sprintf("%s.%s %s/%s", kind.Name, group.Group, items.Items[i].Namespace, items.Items[i].Name))
			}
		}
	}
	requests, err := c.nodeRequests(ctx)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(line string) bool {
		return slices.ContainsFunc(made, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) || slices.Contains(requests, line)
	})
	slices.Sort(found)
	return found, nil
}

// nodeRequests are the certificate requests of real kubelets, which Kubernetes removes after an hour.
func (c *side) nodeRequests(ctx context.Context) ([]string, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing certificate requests of %s: %w", c.name, err)
	}
	var lines []string
	for i := range list.Items {
		user := list.Items[i].Spec.Username
		if strings.HasPrefix(user, "system:node:"+c.name+"-") || strings.HasPrefix(user, "system:bootstrap:") {
			lines = append(lines, "certificatesigningrequests.certificates.k8s.io /"+list.Items[i].Name)
		}
	}
	return lines, nil
}

// asBefore checks that a cluster has exactly the objects that it had before Liqo.
func (s *suite) asBefore(c *side) check {
	return func(ctx context.Context) (bool, string) {
		now, err := c.inventory(ctx)
		if err != nil {
			return false, err.Error()
		}
		var differences []string
		for _, line := range now {
			if !slices.Contains(s.before[c.name], line) {
				differences = append(differences, "left: "+line)
			}
		}
		for _, line := range s.before[c.name] {
			if !slices.Contains(now, line) {
				differences = append(differences, "missing: "+line)
			}
		}
		return len(differences) == 0, fmt.Sprintf("%d differences:\n%s", len(differences), strings.Join(differences, "\n"))
	}
}

// noneLike checks that no object is there whose inventory line has one of some texts in it.
func (c *side) noneLike(texts ...string) check {
	return func(ctx context.Context) (bool, string) {
		now, err := c.inventory(ctx)
		if err != nil {
			return false, err.Error()
		}
		var left []string
		for _, line := range now {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
				left = append(left, line)
			}
		}
		return len(left) == 0, strings.Join(left, "\n")
	}
}
