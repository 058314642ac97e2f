// SPDX-License-Identifier: Apache-2.0
#pragma once

// Coefficients of the polynomials in math.hpp, for float and double. No code.

namespace xla::kernel::detail {

/// Minimax polynomials (Remez's algorithm in 60 digits, then rounded), lowest power first:
///   exp:   exp(x), 1 + x first             of x in [-ln2 / 2, ln2 / 2]
///   expm1: (exp(x) - 1 - x) / x^2          of the same
///   exp2:  2^x                             of x in [-1/2, 1/2], exact at 0
///   log:   (log(1 + x) - x + x^2 / 2) / x^3  of x in [-1/4, 1/2]
///   erf:   erf(x) / x - 1                  of x^2 in [0, 1]
///   erfc:  (1 + 2 z) exp(z^2) erfc(z)      of (z - center) / (z + center), z from 0 to where
///                                          erfc is below the normal numbers
///   sin:   (sin(x) / x - 1) / x^2          of x^2, x in [-pi/4, pi/4]
///   cos:   (cos(x) - 1 + x^2 / 2) / x^4    of x^2
/// Constants in parts, whose first ones have so few bits that small multiples are exact.
template <class T>
struct math_table;

template <>
struct math_table<float> {
  static constexpr float ln2[] = {0.693145752f, 1.42860677e-06f};
  /// Below exp_low exp is less than the normal numbers, at exp_high it is infinite; expm1(x) is x
  /// below tiny.
  static constexpr float exp_low = -87.3365448f, exp_high = 88.9f, tiny = 1e-9f;
  static constexpr float exp[] = {
      1, 1, 0.5f, 0.16666542f, 0.04166738f, 0.008366783f, 0.0013851397f};
  static constexpr float expm1[] = {0.5f,           0.166666657f,   0.0416663364f,
                                    0.00833339524f, 0.00139426987f, 0.000198456299f};
  static constexpr float exp2[] = {1.f,          0.6931472f,    0.24022648f,   0.055503324f,
                                   0.009618437f, 0.0013398874f, 0.00015353362f};
  static constexpr float log[] = {0.333334506f, -0.250000954f, 0.199908614f, -0.16647312f,
                                  0.144783929f, -0.131611899f, 0.104630239f, -0.0450748652f};
  static constexpr float erf[] = {0.128379166f,   -0.37612626f,     0.112835854f,   -0.0268538147f,
                                  0.00518833054f, -0.000801020244f, 7.85384982e-05f};
  static constexpr float erfc_center = 3;
  static constexpr float erfc[] = {1.25300801f,      -0.13562113f,    -0.0475623533f,
                                   0.129646301f,     -0.119271837f,   0.0682960525f,
                                   -0.023792401f,    0.00257099047f,  0.00199338701f,
                                   -0.000790278427f, -0.000272922392f};
};

/// The same constants for double, with more terms.
template <>
struct math_table<double> {
  static constexpr double ln2[] = {0.6931471803691238, 1.9082149292705877e-10};
  static constexpr double half_pi[] = {1.5707963267341256, 6.077100506303966e-11,
                                       2.0222662487959506e-21};
  static constexpr double exp_low = -708.3964185322641, exp_high = 710, tiny = 1e-18;
  static constexpr double exp[] = {1,
                                   1,
                                   0.5,
                                   0.1666666666666668,
                                   0.04166666666666648,
                                   0.008333333333319707,
                                   0.0013888888888974914,
                                   0.0001984126989156968,
                                   2.480158715634314e-05,
                                   2.7557238239801457e-06,
                                   2.75574094863924e-07,
                                   2.5111264570030476e-08,
                                   2.0875271578694283e-09};
  static constexpr double expm1[] = {0.5,
                                     0.1666666666666668,
                                     0.04166666666666648,
                                     0.008333333333319707,
                                     0.0013888888888974914,
                                     0.0001984126989156968,
                                     2.480158715634314e-05,
                                     2.7557238239801457e-06,
                                     2.75574094863924e-07,
                                     2.5111264570030476e-08,
                                     2.0875271578694283e-09};
  static constexpr double erf[] = {
      0.12837916709551256,     -0.3761263890318352,     0.112837916709442,
      -0.026866170643113415,   0.005223977606130842,    -0.0008548325929766244,
      0.0001205529358693695,   -1.4924712439534814e-05, 1.6447132699786621e-06,
      -1.6206318752969208e-07, 1.3710988704190523e-08,  -7.779462971761597e-10};
  static constexpr double erfc_center = 3.75;
  static constexpr double erfc[] = {
      1.2375126308378275,     -0.1402405985855467,    0.003585415485462559,
      0.08227673849011251,    -0.10880393014164669,   0.09230432116153746,
      -0.05869339859168123,   0.028362277399937907,   -0.009746579538893857,
      0.0017556260258304586,  0.00029371357820431486, -0.00029015503480323636,
      5.164923477334102e-05,  2.2387574038000037e-05, -1.144369622975587e-05,
      -9.81012136433965e-07,  1.7489892375140452e-06, -4.6817820656687344e-08,
      -2.530676292756911e-07, 1.4838457537626863e-08, 3.274889244650044e-08,
      -4.579551655380736e-10, -2.2566652917436435e-09};
  static constexpr double sin[] = {-0.16666666666666627,    0.008333333333320954,
                                   -0.00019841269828627984, 2.755731327855808e-06,
                                   -2.5050692784305692e-08, 1.5892975402179103e-10};
  static constexpr double cos[] = {0.04166666666666658,    -0.0013888888888871384,
                                   2.4801587287786374e-05, -2.7557313866215755e-07,
                                   2.0875657631401916e-09, -1.1356268454706816e-11};
};

}  // namespace xla::kernel::detail
