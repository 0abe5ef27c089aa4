package servingcert

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names = ServiceDNSNames("liqo-webhook", "liqo")
)

func issued(t *testing.T, m Material, now time.Time, plan Plan) Material {
	t.Helper()
	next, err := Execute(m, plan, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestDecide(t *testing.T) {
	const day = 24 * time.Hour
	all := Plan{Authority: true, Serving: true}
	fresh := issued(t, Material{}, epoch, all)
	authorityTurn := epoch.Add(AuthorityLifetime / 3 * 2)
	recent := issued(t, fresh, authorityTurn.Add(-day), Plan{Serving: true})
	rotating := issued(t, recent, authorityTurn, Plan{Authority: true})
	rotated := issued(t, rotating, authorityTurn.Add(Settle), Plan{Serving: true})
	old := fresh.Authorities[0].SerialNumber.String()
	noKey, foreign := rotated, fresh
	noKey.AuthorityKey = nil
	foreign.Serving = issued(t, Material{}, epoch, all).Serving
	for sentence, c := range map[string]struct {
		material Material
		names    []string
		now      time.Time
		want     Plan
	}{
		"nothing there: all is made":                        {Material{}, names, epoch, all},
		"all fresh: nothing to do":                          {fresh, names, epoch, Plan{}},
		"a clock slightly behind: nothing to do":            {fresh, names, epoch.Add(-4 * time.Minute), Plan{}},
		"before two thirds of the certificate's life":       {fresh, names, epoch.Add(240 * day), Plan{}},
		"after two thirds of the certificate's life":        {fresh, names, epoch.Add(244 * day), Plan{Serving: true}},
		"the certificate expired":                           {fresh, names, epoch.Add(366 * day), Plan{Serving: true}},
		"a name is not covered":                             {fresh, []string{"other.liqo.svc"}, epoch, Plan{Serving: true}},
		"fewer names than covered: nothing to do":           {fresh, names[:1], epoch, Plan{}},
		"a certificate of an unknown authority":             {foreign, names, epoch, Plan{Serving: true}},
		"the authority's turn: only published":              {recent, names, authorityTurn, Plan{Authority: true}},
		"published, not settled: nothing to do":             {rotating, names, authorityTurn.Add(Settle - time.Second), Plan{}},
		"settled: it issues":                                {rotating, names, authorityTurn.Add(Settle), Plan{Serving: true}},
		"not settled, but a name is missing: it issues":     {rotating, []string{"new.liqo.svc"}, authorityTurn, Plan{Serving: true}},
		"both are trusted while replicas catch up":          {rotated, names, authorityTurn.Add(Settle + Overlap - time.Second), Plan{}},
		"then the old one is dropped":                       {rotated, names, authorityTurn.Add(Settle + Overlap), Plan{Drop: []string{old}}},
		"the authority's key is lost: a new one, both kept": {noKey, names, authorityTurn.Add(Settle), all},
		"everything expired": {fresh, names, epoch.Add(AuthorityLifetime + day),
			Plan{Authority: true, Serving: true, Drop: []string{old}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Decide(c.material, c.names, c.now)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseKeepsWhatIsUsable(t *testing.T) {
	fresh := issued(t, Material{}, epoch, Plan{Authority: true, Serving: true})
	other := issued(t, Material{}, epoch, Plan{Authority: true, Serving: true})
	data := func(change func(map[string][]byte)) map[string][]byte {
		out, err := fresh.Data()
		if err != nil {
			t.Fatal(err)
		}
		change(out)
		return out
	}
	otherData, err := other.Data()
	if err != nil {
		t.Fatal(err)
	}
	type has struct{ Authorities, Key, Serving bool }
	for sentence, c := range map[string]struct {
		data map[string][]byte
		want has
	}{
		"all":                        {data(func(map[string][]byte) {}), has{true, true, true}},
		"nothing":                    {nil, has{}},
		"no authority":               {data(func(d map[string][]byte) { delete(d, AuthoritiesKey) }), has{false, false, true}},
		"text for an authority":      {data(func(d map[string][]byte) { d[AuthoritiesKey] = []byte("x") }), has{false, false, true}},
		"a leaf for an authority":    {data(func(d map[string][]byte) { d[AuthoritiesKey] = d[corev1.TLSCertKey] }), has{false, false, true}},
		"a broken authority":         {data(func(d map[string][]byte) { d[AuthoritiesKey] = encodeCertificate([]byte{1}) }), has{false, false, true}},
		"another authority's key":    {data(func(d map[string][]byte) { d[AuthorityPrivateKey] = otherData[AuthorityPrivateKey] }), has{true, false, true}},
		"another certificate's key":  {data(func(d map[string][]byte) { d[corev1.TLSPrivateKeyKey] = otherData[corev1.TLSPrivateKeyKey] }), has{true, true, false}},
		"a certificate that is text": {data(func(d map[string][]byte) { d[corev1.TLSCertKey] = []byte("x") }), has{true, true, false}},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := Parse(c.data)
			if diff := cmp.Diff(c.want, has{len(m.Authorities) > 0, m.AuthorityKey != nil, m.Serving != nil}); diff != "" {
				t.Errorf("material (-want +got):\n%s", diff)
			}
			now := epoch.Add(time.Minute)
			repaired, err := Execute(m, Decide(m, names, now), names, now)
			if err != nil || !Decide(repaired, names, now).Empty() {
				t.Errorf("not repaired in one step (%v): %+v", err, Decide(repaired, names, now))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	m, err := Execute(Material{}, Plan{Authority: true, Serving: true}, names, epoch)
	if err != nil {
		f.Fatal(err)
	}
	data, err := m.Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[AuthoritiesKey], data[AuthorityPrivateKey], data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	f.Fuzz(func(t *testing.T, ca, caKey, cert, key []byte) {
		m := Parse(map[string][]byte{AuthoritiesKey: ca, AuthorityPrivateKey: caKey, corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key})
		next, err := Execute(m, Decide(m, names, epoch), names, epoch)
		if err == nil && !usable(next, names, epoch) {
			t.Error("unusable after repair")
		}
	})
}
