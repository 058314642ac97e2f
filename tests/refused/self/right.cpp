// error: three .*is not.* two
static_assert(3 == 2, "three is not two");
