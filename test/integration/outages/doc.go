// Package outages tests what happens while a provider cannot be reached, answers late, takes rights back, or loses what etcd stored, and
// afterwards. Its tests run one by one: see package world.
package outages
