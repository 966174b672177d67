/* The interface between Go and ODE. It includes no header of ODE, so only engine.c needs it. */
#ifndef CUBES_ENGINE_H
#define CUBES_ENGINE_H

#include <stdint.h>

/* State of one rigid body. Go's Body has the same layout. */
typedef struct {
	double position[3];
	double orientation[4]; /* x, y, z, w */
	double linear[3];
	double angular[3];
	uint32_t moving;
	uint32_t interacting;
} cubes_body;

/* Parameters of a world. Go's Params has the same layout. */
typedef struct {
	double step;
	double gravity, friction, bounce;
	double spacing, size, player_size, density;
	double roll, drag;
	double hover, push_radius, push;
	double pull_radius, pull;
	double bound;
	double max_speed;
	int64_t side;
} cubes_params;

enum { CUBES_LEFT = 1, CUBES_RIGHT = 2, CUBES_UP = 4, CUBES_DOWN = 8, CUBES_PUSH = 16, CUBES_PULL = 32 };

typedef struct cubes_world cubes_world;

/* Calls must be serialized, also those for different worlds. */
cubes_world *cubes_new(const cubes_params *params);
void cubes_free(cubes_world *w);
void cubes_step(cubes_world *w, uint32_t input, uint32_t seed);
void cubes_get(cubes_world *w, cubes_body *bodies);
void cubes_set(cubes_world *w, int index, const cubes_body *body);
void cubes_round(cubes_world *w, int index, const cubes_body *body);

#endif
