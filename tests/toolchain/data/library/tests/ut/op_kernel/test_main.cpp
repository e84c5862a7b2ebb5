#error "the library's main function is not one that tests of one operator are linked with"
int main() { return 1; }
