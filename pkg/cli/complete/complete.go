package complete

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/target"
)

const (
	budget = 500 * time.Millisecond
	fresh  = 10 * time.Second
)

// Function is what cobra calls for proposals.
type Function = func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// Source answers one question about a cluster.
type Source struct {
	// Question is part of the key that answers are cached under.
	Question string
	// Ask the cluster.
	Ask func(ctx context.Context, cluster *target.Cluster) ([]string, error)
}

// Arguments proposes answers for arguments, at most limit of them (0 means no limit).
func Arguments(flags *target.Flags, source Source, limit int) Function {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return filter(live(command.Context(), flags, source), args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// Flag proposes answers for the value of a flag.
func Flag(flags *target.Flags, source Source) Function {
	return func(command *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return filter(live(command.Context(), flags, source), nil, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// Words proposes fixed words.
func Words(words ...string) Function {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return filter(words, nil, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// filter leaves what begins with the typed text and is not an argument yet.
func filter(words, args []string, typed string) []string {
	var left []string
	for _, word := range words {
		if strings.HasPrefix(word, typed) && !slices.Contains(args, word) {
			left = append(left, word)
		}
	}
	return left
}

// live asks the cluster within the budget, or takes a fresh answer from the cache.
func live(ctx context.Context, flags *target.Flags, source Source) []string {
	cluster, err := flags.Open(target.Stamp{})
	if err != nil {
		return nil
	}
	file := cacheFile(cluster, source.Question)
	if words, ok := cached(file, time.Now()); ok {
		return words
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	answers := make(chan []string, 1)
	go func() {
		words, err := source.Ask(ctx, cluster)
		if err != nil {
			words = nil
		}
		answers <- words
	}()
	select {
	case words := <-answers:
		if words != nil {
			store(file, words)
		}
		return words
	case <-ctx.Done():
		return nil
	}
}

func cacheFile(cluster *target.Cluster, question string) string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	// The user is part of the key: what one may see is not for another.
	sum := sha256.Sum256([]byte(strings.Join([]string{cluster.Config.Host, cluster.Name, cluster.Flags, cluster.LiqoNamespace, question}, "\x00")))
	return filepath.Join(folder, "liqoctl", "complete", hex.EncodeToString(sum[:12])+".json")
}

func cached(file string, now time.Time) ([]string, bool) {
	info, err := os.Stat(file)
	if err != nil || now.Sub(info.ModTime()) > fresh {
		return nil, false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, false
	}
	var words []string
	return words, json.Unmarshal(data, &words) == nil
}

// store writes the answer; a cache that cannot be written is none.
func store(file string, words []string) {
	if file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	data, err := json.Marshal(words)
	if err != nil {
		return
	}
	_ = os.WriteFile(file, data, 0o600)
}

// Kubeconfig proposes names in the kubeconfig: no cluster is asked.
func Kubeconfig(flags *target.Flags, pick func(names Names) []string) Function {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		raw, err := flags.Config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := Names{
			Contexts: slices.Sorted(maps.Keys(raw.Contexts)), Clusters: slices.Sorted(maps.Keys(raw.Clusters)),
			Users: slices.Sorted(maps.Keys(raw.AuthInfos)),
		}
		return filter(pick(names), nil, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// Names are the names in a kubeconfig.
type Names struct{ Contexts, Clusters, Users []string }
