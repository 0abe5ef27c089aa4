// Package weight bounds what is asked of the webhooks before it is decoded: by bytes in flight, and by elements of an object. What a peer or
// whoever reaches the port sends is 3 bytes an element in a request, and some hundred bytes of memory, several times over, once it is decoded.
package weight
