// Package identity turns an Identity into a kubeconfig Secret, after everything that came from the provider was checked: the
// endpoint, the CA, and that the certificate is for our key, our name and now. What does not pass changes nothing: the last
// good kubeconfig stays, and the Identity's condition says what is wrong.
package identity
