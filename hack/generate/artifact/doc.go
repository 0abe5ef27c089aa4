// Package artifact renders the files of this repository that are made from its code, and compares them with the
// tree.
//
// [Render] produces the wanted content of every generated file as one value, a [Set], without touching the tree.
// [Set.Changes] says what differs, including files that nothing generates any longer; [Set.Apply] makes the tree
// follow. Checking for freshness is therefore the same code as generating, minus the writes, and needs neither a
// clean checkout nor Git.
//
// What is generated:
//
//   - zz_generated.deepcopy.go beside each API or configuration package that carries the marker
//     +kubebuilder:object:generate=true;
//   - CRDs of all API packages, for the chart that owns them, with the annotation that makes helm keep them;
//   - messages, servers and clients of the .proto files among the API packages, *.pb.go beside them;
//   - the ClusterRoles in [Roles], from the +kubebuilder:rbac markers beside the code that needs the rights.
package artifact
