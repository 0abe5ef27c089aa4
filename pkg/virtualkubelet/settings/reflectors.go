package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// The names by which users configure what the table of kinds does not hold: pods, the tokens of pods, by the name of whom they stand for,
// Events, and the claims of the storage fabric.
const (
	Pods   = "pod"
	Tokens = "serviceaccount"
	Events = "event"
	Claims = "persistentvolumeclaim"
)

// How many pods, pods' tokens, Events and claims are handled at a time where the user configured nothing.
const (
	podWorkers   = 10
	tokenWorkers = 3
	eventWorkers = 3
	claimWorkers = 3
)

// Reflectors are the flags about reflected kinds. Each one that is given wins over the VkOptionsTemplate; what none names is
// the template's to say, at run time.
type Reflectors struct {
	set   *pflag.FlagSet
	kinds map[string]*reflector
	// HideAddresses keeps the addresses of endpoints at home and those of remote pods at the provider.
	HideAddresses bool
}

// reflector is what the flags say of one kind.
type reflector struct {
	workers  int32
	policy   string
	policies []string
}

// Register adds the flags of every kind.
func (r *Reflectors) Register(set *pflag.FlagSet) {
	r.set, r.kinds = set, map[string]*reflector{}
	r.add(Pods, podWorkers, nil)
	r.add(Tokens, tokenWorkers, nil)
	r.add(Claims, claimWorkers, nil)
	r.add(Events, eventWorkers, []offloadingv1beta1.ReflectionType{offloadingv1beta1.DenyList, offloadingv1beta1.AllowList})
	for _, kind := range reflection.Kinds() {
		r.add(kind.Name, kind.DefaultWorkers, kind.Policies())
	}
	set.BoolVar(&r.HideAddresses, "disable-ip-reflection", false, "keep the addresses of endpoints at home and those of remote pods at the provider")
}

func (r *Reflectors) add(kind string, workers int32, policies []offloadingv1beta1.ReflectionType) {
	flags := &reflector{}
	for _, policy := range policies {
		flags.policies = append(flags.policies, string(policy))
	}
	r.kinds[kind] = flags
	const otherwise = "; if not given, the VkOptionsTemplate says it"
	r.set.Int32Var(&flags.workers, kind+workersFlag, workers, "how many objects of the kind are handled at a time; 0 turns the kind off"+otherwise)
	Bounded(r.set, kind+workersFlag, 0, maxWorkers)
	if len(policies) > 0 {
		r.set.StringVar(&flags.policy, kind+policyFlag, "", "policy of the kind: "+strings.Join(flags.policies, " or ")+otherwise)
		r.set.Lookup(kind + policyFlag).Annotations = map[string][]string{WordsOfFlag: flags.policies}
	}
}

// maxWorkers of a kind.
const maxWorkers = 1000

// Annotations of flags by which the chart checks arguments: the words that a flag takes, and the least and the largest number.
const (
	WordsOfFlag  = "words"
	boundsOfFlag = "bounds"
)

// Bounded says between which numbers a flag is.
func Bounded(set *pflag.FlagSet, name string, least, largest int) {
	set.Lookup(name).Annotations = map[string][]string{boundsOfFlag: {strconv.Itoa(least), strconv.Itoa(largest)}}
}

// What follows a kind's name in its flags.
const (
	workersFlag = "-reflection-workers"
	policyFlag  = "-reflection-type"
)

// Validate checks what was given.
func (r *Reflectors) Validate() error {
	for kind, flags := range r.kinds {
		if flags.workers < 0 || flags.workers > maxWorkers {
			return fmt.Errorf("--%s%s must be between 0 and %d", kind, workersFlag, maxWorkers)
		}
		if flags.policy != "" && !slices.Contains(flags.policies, flags.policy) {
			return fmt.Errorf("--%s%s must be %s", kind, policyFlag, strings.Join(flags.policies, " or "))
		}
	}
	return nil
}

// Given is the configuration of a kind by its flags, and whether there is a flag about its workers.
func (r *Reflectors) Given(kind string) (offloadingv1beta1.ReflectorConfig, bool) {
	flags := r.kinds[kind]
	if flags == nil {
		return offloadingv1beta1.ReflectorConfig{}, false
	}
	return offloadingv1beta1.ReflectorConfig{NumWorkers: flags.workers, Type: offloadingv1beta1.ReflectionType(flags.policy)},
		r.set.Changed(kind + workersFlag)
}

// config is the configuration of a kind: each half is the flag's where it is given, else the template's, else the default.
func (r *Reflectors) config(kind string, t *offloadingv1beta1.VkOptionsTemplate) offloadingv1beta1.ReflectorConfig {
	given, workers := r.Given(kind)
	config := given
	if t != nil {
		if says, there := t.Spec.ReflectorsConfig[kind]; there {
			config = says
			if workers {
				config.NumWorkers = given.NumWorkers
			}
			if given.Type != "" {
				config.Type = given.Type
			}
		}
	}
	if known, ok := reflection.Lookup(kind); ok && (config.Type == "" || !slices.Contains(known.Policies(), config.Type)) {
		config.Type = known.DefaultPolicy
	}
	if kind == addresses && r.HideAddresses {
		config.NumWorkers = 0
	}
	return config
}

// addresses is the kind that shows them.
const addresses = "endpointslice"

// Settings are those in force by a VirtualNode and its template; both are nil before they were read.
func (r *Reflectors) Settings(vn *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplate) Settings {
	s := Settings{Node: vn, NotReflected: notReflected(vn, t), Kinds: map[string]offloadingv1beta1.ReflectorConfig{}}
	for kind := range r.kinds {
		s.Kinds[kind] = r.config(kind, t)
	}
	return s
}
