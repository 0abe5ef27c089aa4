package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// protoSuffix is how the names of files end that services are generated from; the generated ones end with protoOutput and stand beside them.
const (
	protoSuffix = ".proto"
	protoOutput = ".pb.go"
)

// renderServices gives the messages and services of the .proto files among the API packages. Every plugin of the protobuf compiler is given
// what the compiler makes of a file.
func renderServices(ctx context.Context, opts Options) (Set, error) {
	const folder = "pkg/apis"
	set := Set{Files: map[string][]byte{}, Owned: []Owned{{Pattern: folder + "/*/*/*" + protoOutput}}}
	files, err := protoFiles(opts.Root, folder)
	if err != nil {
		return Set{}, err
	}
	for _, file := range files {
		asked, err := compileProto(ctx, opts.Root, file)
		if err != nil {
			return Set{}, err
		}
		for _, plugin := range opts.ProtoPlugins {
			if err := runProtoPlugin(ctx, plugin, asked, set.Files); err != nil {
				return Set{}, fmt.Errorf("generating from %s: %w", file, err)
			}
		}
	}
	return set, nil
}

// protoFiles lists the .proto files below folder, relative to root.
func protoFiles(root, folder string) (files []string, err error) {
	err = filepath.WalkDir(filepath.Join(root, folder), func(path string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() || !strings.HasSuffix(path, protoSuffix) {
			return err
		}
		relative, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for %s files in %s: %w", protoSuffix, folder, err)
	}
	return files, nil
}

// compileProto returns what plugins are asked about a file.
func compileProto(ctx context.Context, root, file string) ([]byte, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", file, err)
	}
	parameter := "paths=source_relative"
	raw, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{FileToGenerate: []string{file}, Parameter: &parameter,
		ProtoFile: []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(compiled[0])}})
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", file, err)
	}
	return raw, nil
}

// runProtoPlugin adds what a plugin makes of a file.
func runProtoPlugin(ctx context.Context, plugin string, asked []byte, files map[string][]byte) error {
	cmd := exec.CommandContext(ctx, plugin)
	var output, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(asked), &output, &complaints
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", plugin, err, strings.TrimSpace(complaints.String()))
	}
	answer := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output.Bytes(), answer); err != nil {
		return fmt.Errorf("reading what %s wrote: %w", plugin, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %s", plugin, answer.GetError())
	}
	for _, made := range answer.GetFile() {
		files[made.GetName()] = []byte(made.GetContent())
	}
	return nil
}
