// Package template renders gateways from WgGatewayServerTemplates and WgGatewayClientTemplates.
//
// Contract:
//   - Texts are templates of Go over [Data], evaluated here and not by text/template: that one calls methods by name, so that a program
//     linked with it keeps every method of every library (18 MB), and it can be made to work without end. There are fields, index, len,
//     print, comparisons, and, or, not, pipelines, if, with and range over lists; no variables but $, no other functions, no definitions.
//   - A key that begins with ? is left out if its text renders to nothing, as what is not set does; otherwise it loses the ?. Where the
//     target has a number, true or false, the text becomes one.
//   - What comes out is held against a list of fields, and against values where a field could give a gateway more than the network of its
//     own pod. A template is written by administrators, but what it is rendered with is partly a peer's.
//   - Each step is bounded. An error says where in the template, and what.
package template
