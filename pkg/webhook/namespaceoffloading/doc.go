// Package namespaceoffloading is the admission of NamespaceOffloadings: names, what cannot change later, and selectors that
// can be parsed. Much of it also stands in the CRD, so that it holds without this webhook; here are the rules that need more
// than one field's syntax, and the warnings.
package namespaceoffloading
