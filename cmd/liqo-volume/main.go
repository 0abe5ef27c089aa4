// Command liqo-volume runs in the helper pods of 'liqoctl move volume': it reads, writes and identifies what is in a volume.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

const buffer = 1 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand(os.Stdin, os.Stdout).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "liqo-volume:", err)
		os.Exit(1)
	}
}

func newCommand(in io.Reader, out io.Writer) *cobra.Command {
	root := &cobra.Command{Use: "liqo-volume", Short: "Read, write and identify what is in a volume", SilenceUsage: true, SilenceErrors: true}
	on := func(use, short string, run func(root *os.Root) error) *cobra.Command {
		return &cobra.Command{Use: use + " FOLDER", Short: short, Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) (err error) {
			folder, err := os.OpenRoot(args[0])
			if err != nil {
				return fmt.Errorf("opening the volume: %w", err)
			}
			defer func() { err = errors.Join(err, folder.Close()) }()
			return run(folder)
		}}
	}
	root.AddCommand(
		&cobra.Command{Use: "wait", Short: "Keep the pod alive until it is stopped", Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error {
			<-command.Context().Done()
			return nil
		}},
		on("send", "Write the volume's files to standard output as a tar archive", func(folder *os.Root) error {
			buffered := bufio.NewWriterSize(out, buffer)
			if err := send(folder, buffered); err != nil {
				return err
			}
			return buffered.Flush()
		}),
		on("receive", "Make the volume hold exactly the files of the tar archive on standard input", func(folder *os.Root) error {
			return receive(folder, bufio.NewReaderSize(in, buffer), toDisk)
		}),
		on("manifest", "Identify the volume's files by a checksum, their number and their size", func(folder *os.Root) error {
			m, err := identify(folder)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "%s %d %d\n", m.digest, m.entries, m.bytes)
			return err
		}),
	)
	return root
}
