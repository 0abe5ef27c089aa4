// Package architecture holds the project to its own house rules, as tests over the source tree: which package may
// import which, how packages are named, how long files and functions are, what stands at the top of the
// repository, and what must never be written down.
//
// It only parses; it compiles and runs nothing of the product, so it also covers files of other operating systems and
// build tags, and takes seconds. What a linter alone can see is in .golangci.yml. The rules themselves are explained in
// docs/architecture.md.
//
// Rules that not all code keeps yet have their offenders in testdata/offenders.tsv, which may only shrink; the sizes of
// the product's rooms are in testdata/budget.tsv, where growth has its reason.
package architecture
