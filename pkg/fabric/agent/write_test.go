package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// While a write is stuck, nobody waits who wants something written. It is given up, and then the newest is written alone. What failed is written
// again when it is still wanted.
func TestAWriteThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, written := time.Now(), ""
		w := NewWriter(func(a, b int) bool { return a == b }, func(ctx context.Context, value int) error {
			if value == 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			written += fmt.Sprintf("%d after %s, ", value, time.Since(begun))
			return errors.New("refused")
		})
		go w.Run(t.Context())
		for value := range 100 {
			w.Want(value, time.Now())
			synctest.Wait()
		}
		if time.Since(begun) != 0 {
			t.Errorf("to want something took %s", time.Since(begun))
		}
		time.Sleep(writing)
		synctest.Wait()
		for _, value := range []int{3, 3, 4, 3} {
			w.Want(value, time.Now())
			synctest.Wait()
		}
		time.Sleep(writing)
		w.Want(3, time.Now())
		synctest.Wait()
		if want := "99 after 5s, 3 after 5s, 4 after 5s, 3 after 5s, 3 after 10s, "; written != want {
			t.Errorf("written: %s want %s", written, want)
		}
	})
}
