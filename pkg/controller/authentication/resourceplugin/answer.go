package resourceplugin

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
	"liqo.io/liqo/pkg/capacity"
)

const (
	// maxResources is how many resources a slice is granted, as many as it may ask for.
	maxResources = 64
	// maxReason bounds the words of a plugin, in characters.
	maxReason = 256
)

// Question is about one slice.
type Question struct {
	// Slice is its name, Of what its pods count for.
	Slice types.NamespacedName
	Of    capacity.Owner
	// Class that it is of.
	Class string
	// Asked for by the consumer, Granted before.
	Asked, Granted corev1.ResourceList
	// Nodes that it is for, by their labels; all if there are none.
	Nodes map[string]string
}

// Decision is what a plugin said of a slice.
type Decision struct {
	// Grant of the last good answer; nil until there is one.
	Grant corev1.ResourceList
	// Words that came with it.
	Words string
	// Trouble is why there was no good answer since, a condition's reason and message; empty if there was.
	Trouble Trouble
}

// Trouble is a reason and a message of a condition; the zero one is none.
type Trouble struct{ Reason, Message string }

// request words a question.
func request(q Question, free, used corev1.ResourceList) *resourcesv1.DecideRequest {
	return &resourcesv1.DecideRequest{ClusterId: q.Of.Consumer, Namespace: q.Slice.Namespace, Name: q.Slice.Name, Class: q.Class,
		Asked: texts(q.Asked), Free: texts(free), Used: texts(used), Granted: texts(q.Granted), NodeSelector: q.Nodes}
}

func texts(list corev1.ResourceList) map[string]string {
	out := make(map[string]string, len(list))
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

// number is what may be read as a quantity: to read one with a large exponent takes minutes.
var number = regexp.MustCompile(`^[+-]?[0-9]{1,19}(\.[0-9]{1,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

// read is the grant of an answer, or why it is not believed.
func read(q Question, answer *resourcesv1.DecideResponse) (corev1.ResourceList, error) {
	given := answer.GetGrant()
	switch {
	case answer.GetClusterId() != q.Of.Consumer || answer.GetNamespace() != q.Slice.Namespace || answer.GetName() != q.Slice.Name:
		return nil, errors.New("it is not about this consumer's slice: cluster_id, namespace and name have to be those of the request")
	case len(given) == 0:
		return nil, errors.New("it names no resource; to grant nothing, name one with 0")
	case len(given) > maxResources:
		return nil, fmt.Errorf("it names %d resources: at most %d are granted", len(given), maxResources)
	}
	grant := make(corev1.ResourceList, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if len(validation.IsQualifiedName(name)) != 0 {
			return nil, errors.New("it names a resource whose name is not valid")
		}
		quantity, err := resource.ParseQuantity(number.FindString(given[name]))
		if err != nil {
			return nil, fmt.Errorf("what it says of %s is no quantity such as 1500m or 8Gi", name)
		}
		grant[corev1.ResourceName(name)] = quantity
	}
	if why := capacity.WhyNotWhole(grant); why != "" {
		return nil, errors.New(why)
	}
	return grant, capacity.Believed(grant)
}

// words are those of a plugin, without what could be taken for something else where they are shown.
func words(text string) string {
	plain := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(plain); len(runes) > maxReason {
		plain = string(runes[:maxReason])
	}
	return strings.TrimSpace(plain)
}

const staying = "; what was granted before stays"

// troubleOf says why a question was not answered. It names no addresses, and nothing that is another one each time.
func troubleOf(err error) Trouble {
	switch code := status.Code(err); {
	case code == codes.Unavailable:
		return Trouble{authv1beta1.ReasonPluginUnreachable, "the resource plugin of the provider is not reached, or says that it is not serving" + staying}
	case code == codes.DeadlineExceeded:
		return Trouble{authv1beta1.ReasonPluginLate, fmt.Sprintf("the resource plugin of the provider does not answer within %s%s", Deadline, staying)}
	case code == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		return refused(fmt.Errorf("it has more than %d KiB", maxAnswer>>10))
	default:
		return refused(fmt.Errorf("it is the error %s", code))
	}
}

// refused says why an answer is not believed.
func refused(why error) Trouble {
	return Trouble{authv1beta1.ReasonPluginAnswerRefused, fmt.Sprintf("the answer of the provider's resource plugin is refused: %s%s", why, staying)}
}
