package fakeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// REST is an API server of few words, for what speaks HTTP itself: it lists and watches the objects of a resource, all or those of a name, and
// applies to them. It does not know who owns a field: what is applied replaces what is there, lists as a whole.
type REST struct {
	mu      sync.Mutex
	version int
	// objects are those that there are, by their paths below /apis, and changes all that happened to them.
	objects map[string]map[string]any
	changes []change
	// more is closed when there is another change.
	more chan struct{}
	// Applied counts what was applied, by path and part.
	applied map[string]int
}

type change struct {
	version int
	kind    string
	path    string
	object  map[string]any
}

// NewREST makes one without objects.
func NewREST() *REST {
	return &REST{objects: map[string]map[string]any{}, more: make(chan struct{}), applied: map[string]int{}}
}

// Put puts an object there; its path is as in networking.liqo.io/v1beta1/namespaces/x/connections/y.
func (r *REST) Put(t testing.TB, path string, o runtime.Object) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(path, content)
}

// Delete takes an object away.
func (r *REST) Delete(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.objects[path]
	delete(r.objects, path)
	r.version++
	r.tell(change{r.version, "DELETED", path, old})
}

// Get reads an object; false if there is none.
func (r *REST) Get(t testing.TB, path string, into any) bool {
	t.Helper()
	r.mu.Lock()
	content, ok := r.objects[path]
	r.mu.Unlock()
	if ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, into); err != nil {
			t.Fatal(err)
		}
	}
	return ok
}

// Applied is how often something was applied to an object or, as in connections/y/status, a part of it.
func (r *REST) Applied(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied[path]
}

func (r *REST) put(path string, content map[string]any) {
	kind := "MODIFIED"
	if r.objects[path] == nil {
		kind = "ADDED"
	}
	r.version++
	gv := strings.SplitN(path, "/", 3)
	content["apiVersion"] = gv[0] + "/" + gv[1]
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["resourceVersion"] = strconv.Itoa(r.version)
	content["metadata"] = metadata
	r.objects[path] = content
	r.tell(change{r.version, kind, path, content})
}

func (r *REST) tell(c change) {
	r.changes = append(r.changes, c)
	close(r.more)
	r.more = make(chan struct{})
}

func (r *REST) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path, query := strings.TrimPrefix(request.URL.Path, "/apis/"), request.URL.Query()
	_, name, _ := strings.Cut(query.Get("fieldSelector"), "=")
	switch {
	case request.Method == http.MethodPatch:
		r.patch(w, request, path)
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		answer(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": http.StatusUnprocessableEntity})
	case query.Get("watch") != "":
		since, _ := strconv.Atoi(query.Get("resourceVersion"))
		r.watch(w, request, path, name, since)
	default:
		r.list(w, path, name)
	}
}

// selects tells whether an object is of a resource, in a namespace if that names one, and has a name, if one is asked for.
func selects(resource, name, path string) bool {
	last := strings.LastIndex(path, "/")
	if last < 0 || name != "" && path[last+1:] != name {
		return false
	}
	if path[:last] == resource {
		return true
	}
	// In all namespaces.
	parts := strings.Split(path[:last], "/")
	return len(parts) == 5 && parts[2] == "namespaces" && strings.Join([]string{parts[0], parts[1], parts[4]}, "/") == resource
}

func (r *REST) list(w http.ResponseWriter, resource, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := []any{}
	// An empty list may be of any kind of its group: nothing is in it.
	kind := map[bool]string{true: "IP", false: "Connection"}[strings.HasPrefix(resource, "ipam.")]
	for path, o := range r.objects {
		if selects(resource, name, path) {
			items = append(items, o)
			kind, _ = o["kind"].(string)
		}
	}
	gv := strings.SplitN(resource, "/", 3)
	answer(w, map[string]any{"kind": kind + "List", "apiVersion": gv[0] + "/" + gv[1], "metadata": map[string]any{"resourceVersion": strconv.Itoa(r.version)}, "items": items})
}

func (r *REST) watch(w http.ResponseWriter, request *http.Request, resource, name string, since int) {
	for told := 0; ; {
		r.mu.Lock()
		changes, more := r.changes[told:], r.more
		told = len(r.changes)
		r.mu.Unlock()
		for _, c := range changes {
			if c.version > since && selects(resource, name, c.path) {
				answer(w, map[string]any{"type": c.kind, "object": c.object})
			}
		}
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		select {
		case <-request.Context().Done():
			return
		case <-more:
		}
	}
}

func (r *REST) patch(w http.ResponseWriter, request *http.Request, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied[path]++
	object, part := path, ""
	if strings.HasSuffix(path, "/status") {
		object, part = strings.TrimSuffix(path, "/status"), "status"
	}
	var applied map[string]any
	if err := json.NewDecoder(request.Body).Decode(&applied); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	there := r.objects[object]
	if there == nil && part != "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	after := map[string]any{"kind": applied["kind"]}
	maps.Copy(after, there)
	for key, value := range applied {
		switch {
		case key == "metadata" && part == "":
			metadata, _ := value.(map[string]any)
			merged, _ := after[key].(map[string]any)
			merged = maps.Clone(merged)
			if merged == nil {
				merged = map[string]any{"uid": fmt.Sprintf("u-%d", r.version), "generation": int64(1)}
			}
			maps.Copy(merged, metadata)
			after[key] = merged
		case part != "" && key == part, part == "" && key != "status":
			before, _ := after[key].(map[string]any)
			now, ok := value.(map[string]any)
			if !ok {
				continue
			}
			merged := maps.Clone(before)
			if merged == nil {
				merged = map[string]any{}
			}
			maps.Copy(merged, now)
			after[key] = merged
		}
	}
	r.put(object, after)
	answer(w, after)
}

// answer cannot fail for a reason that a test of ours would have to know: who asked has gone away.
func answer(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }
