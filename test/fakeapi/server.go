package fakeapi

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// passes is how often a controller may write before it has to be at rest.
const passes = 20

// Options of a Server.
type Options struct {
	// Kinds add kinds besides those of Kubernetes.
	Kinds []func(*runtime.Scheme) error
	// Objects are there from the start.
	Objects []client.Object
	// Build adds what the fake client has to know besides: status subresources, indexes.
	Build func(*fake.ClientBuilder)
	// Creating is asked before an object is created: it may fill in what an API server would, or refuse.
	Creating func(client.Object) error
	// Deleting is asked before an object is deleted: it may refuse.
	Deleting func(client.Object) error
	// Resizing is asked before a Pod is resized: it may refuse.
	Resizing func() error
	// Evict is what happens to a Pod that is evicted.
	Evict func(context.Context, client.Client, client.Object) error
}

// Server is a client of a fake API server.
type Server struct {
	client.Client
	// Writes is how many writes there were, evictions aside. What Creating, Deleting and Resizing refuse is none.
	Writes  int
	options Options
}

// New makes a Server.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, o.Kinds...) {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{options: o}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.Objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: s.create, Update: s.update, Patch: s.patch, Delete: s.delete,
		SubResourceCreate: s.createSub, SubResourceUpdate: s.updateSub, SubResourcePatch: s.patchSub,
	})
	if o.Build != nil {
		o.Build(builder)
	}
	s.Client = builder.Build()
	return s
}

// Rest takes steps until one writes nothing, or says that it was the last one.
func (s *Server) Rest(t testing.TB, step func() (last bool)) {
	t.Helper()
	for range passes {
		if before := s.Writes; step() || s.Writes == before {
			return
		}
	}
	t.Fatal("the controller does not come to rest")
}

func (s *Server) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	s.Writes++
	if s.options.Creating != nil {
		if err := s.options.Creating(o); err != nil {
			s.Writes--
			return err
		}
	}
	return c.Create(ctx, o, opts...)
}

func (s *Server) update(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	s.Writes++
	return c.Update(ctx, o, opts...)
}

func (s *Server) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	s.Writes++
	return c.Patch(ctx, o, p, opts...)
}

func (s *Server) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if s.options.Deleting != nil {
		if err := s.options.Deleting(o); err != nil {
			return err
		}
	}
	s.Writes++
	return c.Delete(ctx, o, opts...)
}

func (s *Server) createSub(ctx context.Context, c client.Client, sub string, o, with client.Object, opts ...client.SubResourceCreateOption) error {
	if sub == "eviction" && s.options.Evict != nil {
		return s.options.Evict(ctx, c, o)
	}
	s.Writes++
	return c.SubResource(sub).Create(ctx, o, with, opts...)
}

func (s *Server) updateSub(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	s.Writes++
	return c.SubResource(sub).Update(ctx, o, opts...)
}

func (s *Server) patchSub(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if sub == "resize" && s.options.Resizing != nil {
		if err := s.options.Resizing(); err != nil {
			return err
		}
	}
	s.Writes++
	return c.SubResource(sub).Patch(ctx, o, p, opts...)
}
