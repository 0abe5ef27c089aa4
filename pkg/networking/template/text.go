package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template/parse"
)

// What one text may be, and all texts of a template may take.
const (
	maxText  = 4096
	maxSteps = 10000
)

// errTooLong and errTooMuch say that a bound is reached.
var (
	errTooLong = fmt.Errorf("a text with a template has, and renders to, at most %d bytes", maxText)
	errTooMuch = fmt.Errorf("the template takes more than %d steps", maxSteps)
)

// texts evaluates the texts of one template.
type texts struct {
	// root is what the template is rendered with.
	root any
	// steps that are left.
	steps int
}

// evaluation is that of one text.
type evaluation struct {
	*texts
	out strings.Builder
}

// evaluate renders a text. One without {{ is what it is.
func (t *texts) evaluate(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	if len(text) > maxText {
		return "", errTooLong
	}
	known := make(map[string]any, len(functions))
	for name := range functions {
		known[name] = true
	}
	trees, err := parse.Parse("text", text, "", "", known)
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: text:"))
	}
	if len(trees) != 1 {
		return "", errors.New("definitions are not known here")
	}
	e := &evaluation{texts: t}
	if err := e.list(t.root, trees["text"].Root); err != nil {
		return "", err
	}
	return e.out.String(), nil
}

// list writes what the nodes of a list render to; dot is what a field is looked up in.
func (e *evaluation) list(dot any, nodes *parse.ListNode) error {
	if nodes == nil {
		return nil
	}
	for _, node := range nodes.Nodes {
		if err := e.node(dot, node); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluation) node(dot any, node parse.Node) error {
	if e.steps--; e.steps < 0 {
		return errTooMuch
	}
	switch node := node.(type) {
	case *parse.TextNode:
		return e.write(string(node.Text))
	case *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		value, err := e.pipe(dot, node.Pipe)
		if err != nil {
			return err
		}
		text, err := textOf(value)
		if err != nil {
			return fmt.Errorf("%s %w", node, err)
		}
		return e.write(text)
	case *parse.IfNode:
		value, err := e.pipe(dot, node.Pipe)
		if err != nil {
			return err
		}
		if truth(value) {
			return e.list(dot, node.List)
		}
		return e.list(dot, node.ElseList)
	case *parse.WithNode:
		value, err := e.pipe(dot, node.Pipe)
		if err != nil {
			return err
		}
		if truth(value) {
			return e.list(value, node.List)
		}
		return e.list(dot, node.ElseList)
	case *parse.RangeNode:
		return e.each(dot, node)
	default:
		return fmt.Errorf("%s is not known here", node)
	}
}

func (e *evaluation) each(dot any, node *parse.RangeNode) error {
	value, err := e.pipe(dot, node.Pipe)
	if err != nil {
		return err
	}
	items, isList := value.([]any)
	if !isList && value != nil {
		return fmt.Errorf("%s is no list", node.Pipe)
	}
	for _, item := range items {
		if err := e.list(item, node.List); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		return e.list(dot, node.ElseList)
	}
	return nil
}

func (e *evaluation) write(text string) error {
	if e.out.Len()+len(text) > maxText {
		return errTooLong
	}
	e.out.WriteString(text)
	return nil
}

// pipe evaluates commands, each with the result of the one before as its last argument.
func (e *evaluation) pipe(dot any, pipe *parse.PipeNode) (any, error) {
	if len(pipe.Decl) > 0 {
		return nil, fmt.Errorf("%s: variables are not known here", pipe)
	}
	var value any
	for i, command := range pipe.Cmds {
		var before []any
		if i > 0 {
			before = []any{value}
		}
		var err error
		if value, err = e.command(dot, command, before); err != nil {
			return nil, err
		}
	}
	return value, nil
}

func (e *evaluation) command(dot any, command *parse.CommandNode, before []any) (any, error) {
	name, isFunction := command.Args[0].(*parse.IdentifierNode)
	if !isFunction {
		if len(command.Args) > 1 || len(before) > 0 {
			return nil, fmt.Errorf("%s is no function", command.Args[0])
		}
		return e.argument(dot, command.Args[0])
	}
	var arguments []any
	for _, node := range command.Args[1:] {
		value, err := e.argument(dot, node)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, value)
	}
	value, err := functions[name.Ident](append(arguments, before...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return value, nil
}

func (e *evaluation) argument(dot any, node parse.Node) (any, error) {
	if e.steps--; e.steps < 0 {
		return nil, errTooMuch
	}
	switch node := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.FieldNode:
		return lookUp(dot, node.Ident)
	case *parse.VariableNode:
		// The parser refuses variables that were not declared, and declarations are refused above: only $ is left.
		return lookUp(e.root, node.Ident[1:])
	case *parse.ChainNode:
		value, err := e.argument(dot, node.Node)
		if err != nil {
			return nil, err
		}
		return lookUp(value, node.Field)
	case *parse.PipeNode:
		return e.pipe(dot, node)
	case *parse.IdentifierNode:
		return functions[node.Ident](nil)
	case *parse.StringNode:
		return node.Text, nil
	case *parse.BoolNode:
		return node.True, nil
	case *parse.NumberNode:
		if !node.IsInt {
			return nil, fmt.Errorf("%s is no whole number", node)
		}
		return node.Int64, nil
	case *parse.NilNode:
		return nil, nil
	default:
		return nil, fmt.Errorf("%s is not known here", node)
	}
}

// textOf is how a value is written. What is not set is nothing.
func textOf(value any) (string, error) {
	switch value := value.(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case bool:
		return strconv.FormatBool(value), nil
	default:
		return "", errors.New("is no text, number, true or false")
	}
}
