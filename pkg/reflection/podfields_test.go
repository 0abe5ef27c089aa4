package reflection

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// D11: TestEveryPodFieldIsClassified fails when Kubernetes adds a field to pods that nobody looked at: decide whether it is
// copied, mapped, local or refused, and enter it in the table.
func TestEveryPodFieldIsClassified(t *testing.T) {
	reached := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice || at.Kind() == reflect.Map {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || at.PkgPath() != podAPI || reached[at] {
			return
		}
		reached[at] = true
		known, ok := podFields[at]
		if !ok {
			t.Errorf("type %s is not in the table", at.Name())
			return
		}
		for i, f := range known {
			switch f.treatment {
			case Unclassified:
				t.Errorf("field %s.%s is not classified", at.Name(), f.name)
			case Copied, Mapped:
				walk(at.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[corev1.PodSpec]())
	for at := range podFields {
		if !reached[at] {
			t.Errorf("type %s is in the table but not part of any pod", at.Name())
		}
	}
}

// TestTheTableNamesOnlyFieldsThatExist keeps stale names and double entries out of the table.
func TestTheTableNamesOnlyFieldsThatExist(t *testing.T) {
	count := 0
	for _, list := range podFields {
		for _, f := range list {
			if f.treatment != Unclassified {
				count++
			}
		}
	}
	if count < 250 {
		t.Errorf("only %d fields are classified", count)
	}
}

// consumerOnly are mapped fields that the consumer changes and the provider may accept as they are, or checks elsewhere.
var consumerOnly = []string{
	"PodSpec.nodeSelector", "PodSpec.affinity", "PodSpec.automountServiceAccountToken", "PodSpec.readinessGates", "EnvVarSource.fieldRef",
	"ConfigMapEnvSource.LocalObjectReference", "ConfigMapKeySelector.LocalObjectReference", "ConfigMapVolumeSource.LocalObjectReference",
	"ConfigMapProjection.LocalObjectReference", "VolumeSource.projected", "VolumeSource.ephemeral", "VolumeProjection.serviceAccountToken",
}

func TestEveryMappedFieldHasARule(t *testing.T) {
	mapped := map[string]bool{}
	for at, list := range podFields {
		for _, f := range list {
			name := at.Name() + "." + f.name
			if f.treatment == Mapped {
				mapped[name] = true
				if podRules[name] == nil && !slices.Contains(consumerOnly, name) {
					t.Errorf("mapped field %s has no rule", name)
				}
			}
		}
	}
	for name := range podRules {
		if !mapped[name] {
			t.Errorf("there is a rule for %s, which is not a mapped field", name)
		}
	}
}

// TestCopiedSpecCopiesWhatTheTableSays compares the hand-written copy with the table.
func TestCopiedSpecCopiesWhatTheTableSays(t *testing.T) {
	full := filled(t)
	got := reflect.ValueOf(copiedSpec(full.DeepCopy()))
	for i, f := range podFields[reflect.TypeFor[corev1.PodSpec]()] {
		kept := !got.Field(i).IsZero()
		// The node selector is the patch's; tolerations lose only ours.
		want := f.treatment == Copied || f.name == "tolerations" || f.name == "terminationGracePeriodSeconds"
		if kept != want {
			t.Errorf("field %s (%s): copied = %v, want %v", f.name, f.treatment, kept, want)
		}
	}
}

// filled returns a spec in which every field is set.
func filled(t *testing.T) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	value := reflect.ValueOf(spec).Elem()
	for i := range value.NumField() {
		field := value.Field(i)
		switch field.Kind() {
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		case reflect.String:
			field.SetString("x")
		case reflect.Bool:
			field.SetBool(true)
		default:
			t.Fatalf("field %s has the kind %s", value.Type().Field(i).Name, field.Kind())
		}
	}
	return spec
}
