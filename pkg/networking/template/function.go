package template

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var errArguments = errors.New("takes another number of arguments")

// functions are those that texts may call, with what they have in text/template.
var functions = map[string]func(arguments []any) (any, error){
	"and":   func(arguments []any) (any, error) { return deciding(arguments, false) },
	"or":    func(arguments []any) (any, error) { return deciding(arguments, true) },
	"not":   one(func(value any) (any, error) { return !truth(value), nil }),
	"len":   one(length),
	"index": index,
	"print": printed,
	"eq":    equal,
	"ne":    compared(func(c int) bool { return c != 0 }),
	"lt":    compared(func(c int) bool { return c < 0 }),
	"le":    compared(func(c int) bool { return c <= 0 }),
	"gt":    compared(func(c int) bool { return c > 0 }),
	"ge":    compared(func(c int) bool { return c >= 0 }),
}

func one(f func(value any) (any, error)) func(arguments []any) (any, error) {
	return func(arguments []any) (any, error) {
		if len(arguments) != 1 {
			return nil, errArguments
		}
		return f(arguments[0])
	}
}

// truth tells whether a value is something: not nil, false, 0 or empty.
func truth(value any) bool {
	switch value := value.(type) {
	case bool:
		return value
	case string:
		return value != ""
	case int64:
		return value != 0
	case []any:
		return len(value) > 0
	case map[string]any:
		return len(value) > 0
	default:
		return false
	}
}

// deciding returns the first argument that is as true as said, or the last one.
func deciding(arguments []any, wanted bool) (any, error) {
	if len(arguments) == 0 {
		return nil, errArguments
	}
	for _, value := range arguments {
		if truth(value) == wanted {
			return value, nil
		}
	}
	return arguments[len(arguments)-1], nil
}

func length(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return int64(len(value)), nil
	case []any:
		return int64(len(value)), nil
	case map[string]any:
		return int64(len(value)), nil
	default:
		return nil, errors.New("has no length")
	}
}

// index goes from the first argument down by the others.
func index(arguments []any) (any, error) {
	if len(arguments) == 0 {
		return nil, errArguments
	}
	value := arguments[0]
	for _, key := range arguments[1:] {
		switch from := value.(type) {
		case []any:
			place, isNumber := key.(int64)
			if !isNumber || place < 0 || place >= int64(len(from)) {
				return nil, fmt.Errorf("a list of %d has no item %v", len(from), key)
			}
			value = from[place]
		case map[string]any:
			name, isText := key.(string)
			if !isText {
				return nil, fmt.Errorf("%v is no key", key)
			}
			value = from[name]
		default:
			return nil, errors.New("is neither a list nor a map")
		}
	}
	return value, nil
}

// printed puts texts together, as they are.
func printed(arguments []any) (any, error) {
	var all strings.Builder
	for _, value := range arguments {
		text, err := textOf(value)
		if err != nil {
			return nil, err
		}
		if all.Len()+len(text) > maxText {
			return nil, errTooLong
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// equal tells whether the first argument is one of the others.
func equal(arguments []any) (any, error) {
	if len(arguments) < 2 {
		return nil, errArguments
	}
	for _, other := range arguments[1:] {
		order, err := compare(arguments[0], other)
		if err != nil {
			return nil, err
		}
		if order == 0 {
			return true, nil
		}
	}
	return false, nil
}

func compared(holds func(order int) bool) func(arguments []any) (any, error) {
	return func(arguments []any) (any, error) {
		if len(arguments) != 2 {
			return nil, errArguments
		}
		order, err := compare(arguments[0], arguments[1])
		return err == nil && holds(order), err
	}
}

// compare orders two texts, two numbers, or false and true. What is not set is like an empty text, 0 or false.
func compare(a, b any) (int, error) {
	if a == nil && b != nil {
		order, err := compare(b, a)
		return -order, err
	}
	switch a := a.(type) {
	case nil:
		return 0, nil
	case string:
		if other, same := b.(string); same || b == nil {
			return cmp.Compare(a, other), nil
		}
	case int64:
		if other, same := b.(int64); same || b == nil {
			return cmp.Compare(a, other), nil
		}
	case bool:
		if other, same := b.(bool); same || b == nil {
			return cmp.Compare(number(a), number(other)), nil
		}
	}
	return 0, errors.New("values of these types cannot be compared")
}

func number(value bool) int {
	if value {
		return 1
	}
	return 0
}

// lookUp goes down the fields of objects. What is not set has none, and leads to nothing.
func lookUp(value any, names []string) (any, error) {
	for _, name := range names {
		if value == nil {
			return nil, nil
		}
		object, isObject := value.(map[string]any)
		if !isObject {
			return nil, fmt.Errorf("there is no field %s", name)
		}
		next, found := object[name]
		if !found {
			return nil, fmt.Errorf("there is no field %s; there are %s", name, strings.Join(slices.Sorted(maps.Keys(object)), ", "))
		}
		value = next
	}
	return value, nil
}
