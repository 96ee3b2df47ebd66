// Nothing is called from outside: the library is preloaded. SwiftPM wants a header.
