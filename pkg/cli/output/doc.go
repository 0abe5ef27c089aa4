// Package output is how commands show things: progress, tables, trees, JSON and YAML, errors.
//
// Contract:
//   - Standard output is data, standard error is talk: observers and errors write to the latter only.
//   - It is the only importer of the terminal library, whose state is global: Style is decided once, by New.
//   - With -o json the talk is for programs too: one JSON object a line, see Line.
//   - Colour and spinners appear on terminals only. NO_COLOR and --color decide about colour; it never carries meaning alone.
//     Without UTF-8 the signs are ASCII.
//   - Off a terminal a step says a line when it begins, one every 15 seconds while it waits, and one when it ends.
//   - A read command builds one value; the table, JSON and YAML are renderings of it.
package output
