package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/hack/tools/cache"
)

const (
	// results is the folder of what is known of a run, below the checkout.
	results = "dist/test"
	table   = "test/tiers.tsv"
	// chance is how many tests of one run may pass only when they are run again.
	chance = 3
	// envCommands is where test/integration/fixture finds our commands.
	envCommands = "LIQO_TEST_COMMANDS"
	// grace is what tests that are interrupted have to take their clusters down.
	grace = 3 * time.Minute
)

func command() *cobra.Command {
	root := &cobra.Command{Use: "suite", SilenceErrors: true, SilenceUsage: true}
	var name, tier string
	run := &cobra.Command{
		Use: "run -- FLAGS-AND-PACKAGES-OF-GO-TEST", Short: "run the tests of a suite", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runSuite(cmd.Context(), name, tier, args) },
	}
	run.Flags().StringVar(&name, "name", "", "what the suite is called in "+results)
	run.Flags().StringVar(&tier, "tier", tierAll, "which tests: "+tierTest+", or "+tierAll)
	_ = run.MarkFlagRequired("name")
	var receipt bool
	report := &cobra.Command{
		Use: "report", Short: "say how the suites went", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reportAll(cmd.Context(), cmd.OutOrStdout(), receipt)
		},
	}
	report.Flags().BoolVar(&receipt, "receipt", false, "leave a receipt if the work tree is clean")
	root.AddCommand(run, report, &cobra.Command{
		Use: "passed", Short: "say whether the present commit passed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return passed(cmd.Context(), cmd.OutOrStdout()) },
	})
	return root
}

// runSuite runs the tests of a tier, with arguments of go test.
func runSuite(ctx context.Context, name, tier string, args []string) error {
	if err := os.MkdirAll(results, 0o755); err != nil {
		return fmt.Errorf("making the folder of results: %w", err)
	}
	rows, err := readTiers(table)
	if err != nil {
		return err
	}
	folder, err := cache.Root()
	if err != nil {
		return err
	}
	tool, err := cache.Path(ctx, folder, "gotestsum", os.Stderr)
	if err != nil {
		return err
	}
	flags, packages := split(args)
	arguments := []string{
		"--format=standard-quiet", "--jsonfile=" + file(name, "json"), "--junitfile=" + file(name, "xml"),
		"--rerun-fails=1", fmt.Sprintf("--rerun-fails-max-failures=%d", chance), "--rerun-fails-run-root-test",
		"--packages=" + strings.Join(packages, " "), "--", "-count=1", "-vet=off",
	}
	if skip := skipped(rows, tier); skip != "" {
		arguments = append(arguments, "-skip="+skip)
	}
	commands, err := buildCommands(ctx)
	if err != nil {
		return err
	}
	test := interruptible(ctx, tool, append(arguments, flags...)...)
	test.Stdout, test.Stderr, test.Env = os.Stdout, os.Stderr, append(os.Environ(), envCommands+"="+commands)
	began := time.Now()
	err = test.Run()
	seconds := time.Since(began).Seconds()
	fmt.Printf("suite %s: %.0f s\n", name, seconds)
	if failed := os.WriteFile(file(name, "seconds"), fmt.Appendf(nil, "%.0f\n", seconds), 0o600); failed != nil {
		return cmp.Or(err, fmt.Errorf("writing how long the suite took: %w", failed))
	}
	if err != nil {
		return err
	}
	outcomes, err := readFile(file(name, "json"))
	if err != nil {
		return err
	}
	if failed := failures(outcomes); len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// buildCommands builds our commands once for all test binaries of a suite, with its GOFLAGS, and returns their folder.
func buildCommands(ctx context.Context) (folder string, err error) {
	if folder, err = filepath.Abs(filepath.Join(results, "commands")); err != nil {
		return "", fmt.Errorf("naming the folder of commands: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator), "./cmd/...")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building our commands: %w", err)
	}
	return folder, nil
}

func file(name, extension string) string { return filepath.Join(results, name+"."+extension) }

// split tells flags of go test from packages, which begin with a dot.
func split(args []string) (flags, packages []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "./") {
			packages = append(packages, arg)
		} else {
			flags = append(flags, arg)
		}
	}
	return flags, packages
}

// reportAll says how the suites whose results are there went.
func reportAll(ctx context.Context, out io.Writer, receipt bool) error {
	rows, err := readTiers(table)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(file("*", "json"))
	if err != nil {
		return fmt.Errorf("looking for results: %w", err)
	}
	var all []outcome
	total := 0
	for _, path := range files {
		if filepath.Base(path) == againFile {
			continue
		}
		outcomes, err := readFile(path)
		if err != nil {
			return err
		}
		all = append(all, outcomes...)
		suite := strings.TrimSuffix(filepath.Base(path), ".json")
		seconds := readSeconds(file(suite, "seconds"))
		total += seconds
		fmt.Fprintf(out, "%-16s %4d tests %6d s\n", suite, len(outcomes), seconds)
	}
	again := passedAgain(all)
	encoded, err := json.MarshalIndent(again, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding what passed when run again: %w", err)
	}
	if err := os.WriteFile(filepath.Join(results, againFile), append(encoded, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing what passed when run again: %w", err)
	}
	describe(out, all, again, rows)
	if failed := failures(all); len(failed) > 0 {
		return fmt.Errorf("failed:\n  %s", strings.Join(failed, "\n  "))
	}
	if len(again) > chance {
		return fmt.Errorf("%d tests passed only when they were run again: more than %d is no chance", len(again), chance)
	}
	if receipt {
		return leaveReceipt(ctx, out, total)
	}
	return nil
}

// interruptible is a command whose whole group is interrupted when ctx ends: "go test" tells its tests of nothing, and they take down what they
// started, and then end. A terminal tells everybody, but whoever ends a run by a signal may know this program alone.
func interruptible(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel, c.WaitDelay = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }, grace
	return c
}
