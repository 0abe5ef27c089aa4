package output

import (
	"io"
	"strings"
)

const fieldWidth = 18

// Page is something to read, made of sections with fields, lines and tables.
type Page struct {
	writer io.Writer
	style  Style
	begun  bool
}

// NewPage returns an empty page on standard output.
func NewPage(writer io.Writer, style Style) *Page { return &Page{writer: writer, style: style} }

// Section begins a section.
func (p *Page) Section(title string) {
	if p.begun {
		Print(p.writer, "")
	}
	p.begun = true
	printStyled(p.writer, p.style.Bold(plain(title)))
}

// Field writes a named value.
func (p *Page) Field(name, value string) {
	padding := strings.Repeat(" ", max(fieldWidth-len([]rune(name)), 1))
	Print(p.writer, "  "+name+":"+padding+value)
}

// Line writes a sentence.
func (p *Page) Line(text string) { Print(p.writer, "  "+text) }

// Table writes rows under a header.
func (p *Page) Table(header []string, rows [][]string) {
	Table(indented{p.writer}, header, rows)
}

// indented puts the section's margin before each line; Table writes whole lines.
type indented struct{ writer io.Writer }

// Write implements io.Writer.
func (i indented) Write(line []byte) (int, error) {
	if _, err := i.writer.Write(append([]byte("  "), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
