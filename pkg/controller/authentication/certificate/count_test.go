package certificate

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Consumers choose the names of slices and Renews. None of them makes a record of another's name, by which certificates would be
// replaced back and forth, or one owner's end would take the other's record.
func TestRecordsDoNotCollide(t *testing.T) {
	long := strings.Repeat("x", 250)
	digest := strings.TrimPrefix(SliceRecord(long), authv1beta1.CertificateSecretPrefix)
	if _, err := hex.DecodeString(digest); err != nil {
		t.Fatalf("the record of a long name is %q", digest)
	}
	records := map[string]string{
		"the tenant's":  TenantRecord(),
		"slice tenant":  SliceRecord("tenant"),
		"Renew tenant":  RenewRecord("tenant"),
		"Renew x":       RenewRecord("x"),
		"slice x":       SliceRecord("x"),
		"slice renew-x": SliceRecord("renew-x"),
		"Renew slice-x": RenewRecord("slice-x"),
		"a long slice":  SliceRecord(long),
		"a long Renew":  RenewRecord(long),
		"a slice named like a long slice's record":  SliceRecord(digest),
		"a Renew named like a long slice's record":  RenewRecord(digest),
		"a slice with the name of a whole record":   SliceRecord(TenantRecord()),
		"a slice that begins like a Renew's record": SliceRecord("renew-" + digest),
	}
	owners := map[string]string{}
	for owner, record := range records {
		if other, taken := owners[record]; taken {
			t.Errorf("%s and %s share the record %s", owner, other, record)
		}
		owners[record] = owner
	}
}

// Whoever asks with one new key after the other gets certificates at a bounded rate; other consumers do not notice.
func TestCertificatesAreCounted(t *testing.T) {
	asked := func(b *bench, remote string, number int) (made int, last error) {
		before := len(b.requests(t))
		for i := range number {
			r := b.request(b.ca.Key())
			r.RemoteID = remote
			// By Renews of many names, and by one whose key changes, alike.
			if i%2 == 0 {
				r.Record = RenewRecord(strings.Repeat("r", 1+i%50))
			}
			_, last = b.Issue(t.Context(), r)
		}
		return len(b.requests(t)) - before, last
	}
	b := newBench(t)
	made, err := asked(b, "rome", 3*burst)
	if made != burst || reconcile.Classify(err) != reconcile.Waiting {
		t.Errorf("%d requests were made for certificates, want %d; the last answer is %v", made, burst, err)
	}
	wantReason(t, err, authv1beta1.ReasonCertificatePending)
	if made, err = asked(b, "naples", 1); made != 1 {
		t.Errorf("another consumer gets none: %v", err)
	}
	b.clock.SetTime(b.clock.Now().Add(5*interval + time.Millisecond))
	if made, _ = asked(b, "rome", 50); made != 5 {
		t.Errorf("%d requests were made in 50 s, want 5", made)
	}
}
