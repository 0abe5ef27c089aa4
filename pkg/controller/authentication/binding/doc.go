// Package binding keeps RoleBindings of ours as they should be: created if missing, replaced if they point elsewhere, and
// never touched if somebody else made them.
package binding
