// Package compat holds Liqo against what users of Liqo v1.2 know: values of the chart, commands and flags of liqoctl, kinds with their fields,
// labels and annotations. What v1 has stands in tables in testdata (README.md there); each is compared with the product itself.
//
// What is not here as it was in v1 stands in a table of exceptions, with the reason: testdata/*-exceptions.tsv, and
// charts/liqo/files/compat.yaml for values, which users are told from. A table may only shrink: a row that no longer applies fails the
// test, and so does one more than there were.
package compat
