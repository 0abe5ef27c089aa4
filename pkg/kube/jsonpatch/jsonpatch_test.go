package jsonpatch

import "testing"

func TestAPatchIsWrittenAsTheRFCSays(t *testing.T) {
	patch := Patch{
		Test("a", "metadata", "labels", "liqo.io/x~y"), Add(nil, "spec"), Add("", "data", "k"), Remove("metadata", "annotations", "b"),
	}
	got, err := patch.Encode()
	const want = `[{"op":"test","path":"/metadata/labels/liqo.io~1x~0y","value":"a"},{"op":"add","path":"/spec","value":null},` +
		`{"op":"add","path":"/data/k","value":""},{"op":"remove","path":"/metadata/annotations/b"}]`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestWhatCannotBeEncodedIsAnError(t *testing.T) {
	if _, err := (Patch{Add(make(chan int), "spec")}).Encode(); err == nil {
		t.Error("a channel was encoded")
	}
}
