// Package fakeapi is the API server of unit tests: controller-runtime's fake client, which counts what is written to it, so that
// a test can let a controller come to rest and see that it writes nothing more.
package fakeapi
