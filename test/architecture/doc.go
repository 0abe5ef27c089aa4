// Package architecture holds the project to its own house rules, as tests over the source tree: which package may
// import which, how packages are named, how long files and functions are, what stands at the top of the
// repository, and what must never be written down.
//
// It only parses; it neither compiles nor runs anything, so it also covers files of other operating systems and
// build tags, and takes a second. What a linter can say while one types is in .golangci.yml as well; these tests are
// the authority. The rules themselves are explained in docs/architecture.md.
package architecture
