package fakeapi

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Past is the client of a controller whose cache was filled from an API server that lags: what is read is as it was then, what is written
// is written now.
type Past struct {
	client.Client
	// Then is the cluster as the cache shows it.
	Then client.Reader
}

// Get reads an object as it was.
func (p Past) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return p.Then.Get(ctx, key, into, options...)
}

// List reads objects as they were.
func (p Past) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return p.Then.List(ctx, into, options...)
}

// Lagging is the client of a controller of this server whose cache shows these objects, and no others.
func (s *Server) Lagging(t testing.TB, objects ...client.Object) client.Client {
	t.Helper()
	return Past{Client: s.Client, Then: New(t, Options{Kinds: s.options.Kinds, Objects: objects})}
}
