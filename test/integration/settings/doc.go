// Package settings tests what follows when settings change that all share: those of controller managers, virtual kubelets and virtual
// nodes, and certificates. Its tests run one by one: see package world.
package settings
