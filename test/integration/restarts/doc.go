// Package restarts tests what happens when our processes stop, start anew, stand still, stand by for each other or serve a second
// virtual node. Its tests run one by one: see package world.
package restarts
