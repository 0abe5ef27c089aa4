package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/dataplane"
)

const (
	// reaching is how long an answer may take; TCP asks again after one second.
	reaching = 3500 * time.Millisecond
	// Reached is what 'reach' says of an address that answers; of others it says silent, and why.
	Reached = "reached"
	silent  = "silent"
)

// Reach is the command that asks addresses of peers whether they answer. It needs no rights: it opens connections that are refused.
func Reach() *cobra.Command {
	return &cobra.Command{
		Use: "reach ADDRESS...", Short: "Tell which of some addresses answer to this node", Args: cobra.MinimumNArgs(1), SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			said := make([]string, len(args))
			var group sync.WaitGroup
			for i, text := range args {
				address, err := netip.ParseAddr(text)
				if err != nil {
					return fmt.Errorf("%q is no address: %w", text, err)
				}
				group.Go(func() {
					said[i] = Reached
					if err := Ask(cmd.Context(), address); err != nil {
						said[i] = silent + " " + err.Error()
					}
				})
			}
			group.Wait()
			for i, text := range args {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), text, said[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Ask fails if an address does not answer. That it refuses a connection is an answer, too.
func Ask(ctx context.Context, address netip.Addr) error {
	dialer := net.Dialer{Timeout: reaching}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address.String(), strconv.Itoa(dataplane.AskedPort)))
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil
	default:
		return err
	}
}
