// Package partition decides what becomes of a pod whose provider and consumer lost each other, by what the pod asks for. Both sides decide
// by the same words: the provider when it stops the pod (Of), the consumer when it knows that (StoppedAfter).
package partition
