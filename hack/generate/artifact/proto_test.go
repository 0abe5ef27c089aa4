package artifact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

func TestServicesAreCompiled(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"pkg/apis/good/v1/good.proto": "syntax = \"proto3\";\npackage good.v1;\n// Word says it.\nmessage Word { string text = 1; }\n",
		"pkg/apis/bad/v1/bad.proto":   "syntax = \"proto3\";\npackage bad.v1;\nmessage Word { Sentence of = 1; }\n",
		"pkg/apis/good/v1/doc.go":     "package v1",
	})
	files, err := protoFiles(root, "pkg/apis")
	if diff := cmp.Diff([]string{"pkg/apis/bad/v1/bad.proto", "pkg/apis/good/v1/good.proto"}, files); diff != "" || err != nil {
		t.Fatalf("files (-want +got, error %v):\n%s", err, diff)
	}
	if none, err := protoFiles(root, "pkg/missing"); err != nil || none != nil {
		t.Errorf("a missing folder has no files, got %v (error %v)", none, err)
	}
	raw, err := compileProto(t.Context(), root, files[1])
	if err != nil {
		t.Fatal(err)
	}
	asked := &pluginpb.CodeGeneratorRequest{}
	if err := proto.Unmarshal(raw, asked); err != nil || len(asked.GetProtoFile()) != 1 {
		t.Fatalf("plugins are asked about %d files (error %v)", len(asked.GetProtoFile()), err)
	}
	file := asked.GetProtoFile()[0]
	if file.GetMessageType()[0].GetName() != "Word" || !strings.Contains(file.String(), "Word says it.") {
		t.Errorf("plugins are told %s", file)
	}
	if _, err := compileProto(t.Context(), root, files[0]); err == nil || !strings.Contains(err.Error(), "bad.proto:3") || !strings.Contains(err.Error(), "Sentence") {
		t.Errorf("a file that names what is not there gave %v", err)
	}
}
