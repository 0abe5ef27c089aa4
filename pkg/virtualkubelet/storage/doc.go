// Package storage provides the volumes of claims whose first pod runs on this virtual node: a claim in the twin namespace at the
// provider, and in this cluster a volume that stands for it, which tells the scheduler where the data is.
//
// Data is more precious than order. A claim at the provider is never made a second time for the same volume, never given to
// another claim than the one it was made for, and deleted only after this cluster's API server said that its claim is gone and
// its volume was given back with policy Delete.
package storage
