package output

import (
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/pterm/pterm"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// ColorMode says when colours are used.
type ColorMode string

// The colour modes.
const (
	// ColorAuto uses colours on terminals, unless NO_COLOR is set.
	ColorAuto ColorMode = "auto"
	// ColorAlways uses colours.
	ColorAlways ColorMode = "always"
	// ColorNever uses none.
	ColorNever ColorMode = "never"
)

// Style is what the streams can show.
type Style struct {
	// Terminal tells whether standard error is one, so that lines can be rewritten.
	Terminal bool
	// Color tells whether colours are used.
	Color bool
	// Unicode tells whether signs other than ASCII can be shown.
	Unicode bool
}

// Detect decides the style from the streams and the environment.
func Detect(streams genericiooptions.IOStreams, mode ColorMode, environment func(string) string) Style {
	terminal := IsTerminal(streams.ErrOut) && environment("TERM") != "dumb"
	style := Style{Terminal: terminal, Unicode: utf8(environment)}
	switch mode {
	case ColorAlways:
		style.Color = environment("NO_COLOR") == ""
	case ColorNever:
		style.Color = false
	default:
		style.Color = terminal && environment("NO_COLOR") == ""
	}
	return style
}

// IsTerminal tells whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

func utf8(environment func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := environment(name); value != "" {
			upper := strings.ToUpper(value)
			return strings.Contains(upper, "UTF-8") || strings.Contains(upper, "UTF8")
		}
	}
	return false
}

type sign int

const (
	signDone sign = iota
	signWarn
	signFail
	signInfo
	signWork
)

var (
	unicodeSigns = map[sign]string{signDone: "✔", signWarn: "‼", signFail: "✖", signInfo: "ℹ", signWork: "…"}
	asciiSigns   = map[sign]string{signDone: "OK  ", signWarn: "WARN", signFail: "ERRO", signInfo: "INFO", signWork: "... "}
	colors       = map[sign]pterm.Color{
		signDone: pterm.FgGreen, signWarn: pterm.FgYellow, signFail: pterm.FgRed, signInfo: pterm.FgLightBlue, signWork: pterm.FgGray,
	}
)

// sign returns a sign, coloured if colours are used. Off a terminal it is always a word.
func (s Style) sign(kind sign) string {
	text := asciiSigns[kind]
	if s.Unicode && s.Terminal {
		text = unicodeSigns[kind]
	}
	return s.paint(colors[kind], text)
}

func (s Style) paint(color pterm.Color, text string) string {
	if !s.Color {
		return text
	}
	return color.Sprint(text)
}

// Bold returns text that stands out, if colours are used.
func (s Style) Bold(text string) string {
	if !s.Color {
		return text
	}
	return pterm.Bold.Sprint(text)
}

// Print writes a text as a line.
func Print(writer io.Writer, text string) { printStyled(writer, plain(text)) }

// printStyled writes a line whose colours are ours, and whose words are plain.
func printStyled(writer io.Writer, line string) { _, _ = io.WriteString(writer, line+"\n") }

// plain makes one line of a text that does nothing to a terminal but appear there: a peer's words may be part of it.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, corev1beta1.Printable(text))
}
