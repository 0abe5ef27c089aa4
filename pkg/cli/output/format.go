package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
)

// Format of data on standard output.
type Format string

// The formats.
const (
	// Human is what people read; it may change between versions.
	Human Format = ""
	// JSON is for programs.
	JSON Format = "json"
	// YAML is for programs and people.
	YAML Format = "yaml"
)

// Formats lists the names that users may give.
var Formats = []string{string(JSON), string(YAML)}

// ParseFormat reads a format from a flag.
func ParseFormat(name string) (Format, error) {
	if name == "" || slices.Contains(Formats, name) {
		return Format(name), nil
	}
	return "", failure.Misuse("choose one of "+strings.Join(Formats, ", "), "the output format %q is unknown", name)
}

// Write writes a value as JSON or YAML. A list without elements is an empty one there, not null. What would do something to a terminal is escaped, or
// left out of YAML where it has no way to escape it.
func Write(writer io.Writer, format Format, value any) error {
	data, err := json.MarshalIndent(filled(value), "", "  ")
	if format == JSON {
		data = append(escaped(data), '\n')
	} else if err == nil {
		// YAML does not even take these characters from JSON.
		data, err = yaml.JSONToYAML([]byte(corev1beta1.Printable(string(data))))
		data = []byte(corev1beta1.Printable(string(data)))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", format, err)
	}
	if _, err := writer.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", format, err)
	}
	return nil
}

// escaped writes what is not printable, which in JSON stands in texts alone, as JSON escapes it. Of control characters it does so itself only with those
// that ASCII has.
func escaped(data []byte) []byte {
	if !bytes.ContainsFunc(data, corev1beta1.Unprintable) {
		return data
	}
	var all bytes.Buffer
	for _, r := range string(data) {
		if !corev1beta1.Unprintable(r) {
			all.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&all, `\u%04x`, unit)
		}
	}
	return all.Bytes()
}

// Table writes rows under a header, in columns; the last column is never padded.
func Table(writer io.Writer, header []string, rows [][]string) {
	widths := make([]int, len(header))
	all := make([][]string, 0, 1+len(rows))
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = plain(row[i])
		}
		all = append(all, cells)
	}
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+3))
			}
		}
		Print(writer, strings.TrimRight(line.String(), " "))
	}
}

// Error tells an error and the way out; of joined errors each. executable is how the user calls us, which suggestions then begin
// with.
func Error(writer io.Writer, style Style, executable string, err error) {
	each(err, func(single error) {
		text, next := failure.NextOf(single)
		printStyled(writer, style.sign(signFail)+" "+plain(text))
		if next != "" {
			printStyled(writer, "     "+style.Bold("Next:")+" "+plain(strings.ReplaceAll(next, "liqoctl ", executable+" ")))
		}
	})
}

// each calls f with an error, or with each of those that were joined to it.
func each(err error, f func(error)) {
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		f(err)
		return
	}
	for _, single := range joined.Unwrap() {
		each(single, f)
	}
}
