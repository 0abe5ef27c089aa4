// Package lost tests what happens when something is gone that was there: rights at the provider, what etcd stored, objects that are deleted while
// nobody sees it, a Node that a cloud takes for gone; and what comes back with it. Its tests run one by one: see package world.
package lost
