package artifact

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackagesBelowAreThoseWithCode(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"pkg/controller/offloading/quota/reconciler.go":    "package quota",
		"pkg/controller/offloading/quota/testdata/case.go": "package ignored",
		"pkg/controller/notes.txt":                         "no code",
		"pkg/mirror/mirror.go":                             "package mirror",
	})
	got, err := packagesBelow(root, "pkg/controller")
	if diff := cmp.Diff([]string{"pkg/controller/offloading/quota"}, got); diff != "" || err != nil {
		t.Errorf("packages (-want +got, error %v):\n%s", err, diff)
	}
	if got, err := packagesBelow(root, "cmd/missing"); err != nil || got != nil {
		t.Errorf("a missing folder has no packages, got %v (error %v)", got, err)
	}
}

func TestCompleteRole(t *testing.T) {
	const clusterRole = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: r
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
`
	const role = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: r
  namespace: liqo
rules: [{verbs: [create]}]
`
	want := generatedNote + `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    app.kubernetes.io/part-of: liqo
  name: r
rules:
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - get
`
	got, err := completeRole("r", []byte(clusterRole))
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("role (-want +got, error %v):\n%s", err, diff)
	}
	for sentence, content := range map[string]string{
		"rights in one namespace alone":           role,
		"rights in one namespace beside the rest": clusterRole + role,
	} {
		if _, err := completeRole("r", []byte(content)); err == nil {
			t.Errorf("%s were accepted", sentence)
		}
	}
}
