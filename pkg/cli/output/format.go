package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

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

// Write writes a value as JSON or YAML. A list without elements is an empty one there, not null.
func Write(writer io.Writer, format Format, value any) error {
	value = filled(value)
	var data []byte
	var err error
	if format == JSON {
		if data, err = json.MarshalIndent(value, "", "  "); err == nil {
			data = append(data, '\n')
		}
	} else {
		data, err = yaml.Marshal(value)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", format, err)
	}
	if _, err := writer.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", format, err)
	}
	return nil
}

// Table writes rows under a header, in columns; the last column is never padded.
func Table(writer io.Writer, header []string, rows [][]string) {
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range append([][]string{header}, rows...) {
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
		Print(writer, style.sign(signFail)+" "+text)
		if next != "" {
			Print(writer, "     "+style.Bold("Next:")+" "+strings.ReplaceAll(next, "liqoctl ", executable+" "))
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
