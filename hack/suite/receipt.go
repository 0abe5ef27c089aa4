package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// receiptFile says which commit passed `make test`: commit, seconds, date.
const receiptFile = "passed"

// began is when `make test` began, by the file that it leaves.
const began = "began"

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// leaveReceipt writes down that the commit passed, if the work tree has nothing else.
func leaveReceipt(ctx context.Context, out io.Writer, seconds int) error {
	if info, err := os.Stat(filepath.Join(results, began)); err == nil {
		seconds = int(time.Since(info.ModTime()).Seconds())
	}
	changes, err := git(ctx, "status", "--porcelain")
	if err != nil {
		fmt.Fprintln(out, "\nno receipt: this is no checkout")
		return nil
	}
	if changes != "" {
		fmt.Fprintf(out, "\nno receipt: the work tree has changes that are not committed\n")
		return nil
	}
	commit, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s %d s %s", commit, seconds, time.Now().UTC().Format(time.RFC3339))
	if err := os.WriteFile(filepath.Join(results, receiptFile), []byte(line+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the receipt: %w", err)
	}
	fmt.Fprintln(out, "\npassed:", line)
	return nil
}

// passed says whether the present commit has the receipt, and what came since the one that has it.
func passed(ctx context.Context, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(results, receiptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no commit passed here: run 'make test' on a work tree without changes")
	}
	if err != nil {
		return fmt.Errorf("reading the receipt: %w", err)
	}
	line := strings.TrimSpace(string(text))
	commit, _, _ := strings.Cut(line, " ")
	since, err := git(ctx, "log", "--oneline", commit+"..HEAD")
	if err != nil {
		return err
	}
	changes, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "passed:", line)
	if since != "" {
		return fmt.Errorf("not tested are the commits since:\n%s", since)
	}
	if changes != "" {
		return fmt.Errorf("not tested is what is not committed:\n%s", changes)
	}
	fmt.Fprintln(out, "That is this commit.")
	return nil
}
