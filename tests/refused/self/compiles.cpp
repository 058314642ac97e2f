// error: .
static_assert(2 == 2);
